// The model's own list of tasks, and its plan, beside the conversation.
import type { Insight } from "./insight.ts";
import { Markdown } from "./markdown.tsx";
import { talk } from "./text/talk.ts";

export function Side({ insight }: { readonly insight: Insight }) {
  const { tasks, plan, planText } = insight;
  return (
    <>
      <section aria-label={talk.tasks}>
        <h3>{talk.tasks}</h3>
        {tasks.length === 0 && <p class="quiet">{talk.noTasks}</p>}
        <ol class="tasks">
          {tasks.map((task) => (
            <li key={task.id} data-state={task.state}>
              <span>{task.subject}</span>
              <span class="quiet">{talk.taskStates[task.state]}</span>
            </li>
          ))}
        </ol>
      </section>
      <section aria-label={talk.plan}>
        <h3>{talk.plan}</h3>
        {plan.plan_active && <p class="planning">{talk.planning}</p>}
        {planText ? <Markdown text={planText} /> : <p class="quiet">{talk.noPlan}</p>}
      </section>
    </>
  );
}
