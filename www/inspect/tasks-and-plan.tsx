// The task list and the plan of the model.
import type { Insight } from "../session/session-state.ts";
import { Markdown } from "../markdown/markdown.tsx";
import { inside } from "../text/inspect.ts";

const words = inside.work;

export function Side({ insight }: { readonly insight: Insight }) {
  const { tasks, plan, planText } = insight;
  return (
    <>
      <section aria-label={words.tasks}>
        <h3>{words.tasks}</h3>
        {tasks.length === 0 && <p class="quiet">{words.noTasks}</p>}
        <ol class="tasks">
          {tasks.map((task) => (
            <li key={task.id} data-state={task.state}>
              <span dir="auto">{task.subject}</span>
              <span class="quiet">{words.taskStates[task.state]}</span>
            </li>
          ))}
        </ol>
      </section>
      <section aria-label={words.plan}>
        <h3>{words.plan}</h3>
        {plan.plan_active && <p class="planning">{words.planning}</p>}
        {planText ? <Markdown text={planText} /> : <p class="quiet">{words.noPlan}</p>}
      </section>
    </>
  );
}
