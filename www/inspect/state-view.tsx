// The AgentState of a session: switches for the parts that a user can change, and the whole state as a tree.
import type { AgentState } from "lockgate";
import { skills as ownSkills, toolGroups } from "../agent/abilities.ts";
import { ProblemBox } from "../controls/problem-box.tsx";
import { inside } from "../text/inspect.ts";
import { Visible } from "../controls/hidden-chars.tsx";
import { Unread } from "./context-view.tsx";
import { Outcome } from "../controls/action-outcome.tsx";
import type { ViewProps } from "./panel.tsx";
import { Permissions } from "./permissions.tsx";
import { useDeed, useReading } from "../controls/agent-hooks.ts";
import { entriesOf, Tree } from "./value-tree.tsx";

const words = inside.state;

export function StateView({ agent, slot, version }: ViewProps) {
  const { sessionId, userId = null } = slot;
  const reading = useReading(async () => {
    const [state, skills] = await Promise.all([agent.getAgentState(slot), skillsOf()]);
    return { state, skills };
  }, [agent, sessionId, userId, version]);
  const deed = useDeed(reading.again);
  // The skills of the page, and the skills in the user's workspace.
  const skillsOf = async () => {
    const paths = await agent.files.list(userId, "skills").catch(() => []);
    const written = paths.flatMap((path) => /^skills\/([^/]+)\/SKILL\.md$/.exec(path)?.[1] ?? []);
    return [...new Set([...ownSkills.map(({ name }) => name), ...written])];
  };
  if (!reading.value) return <Unread problem={reading.problem} onRetry={reading.again} />;
  const { state, skills } = reading.value;
  const { tool_context: tools, plan_mode_context: plan } = state;

  /** Reads the state again before the change, because the state on the page may be old. */
  const change = (next: (now: AgentState) => AgentState) =>
    deed.run(async () => agent.putAgentState(slot, next(await agent.getAgentState(slot))));
  const equip = (part: keyof AgentState["tool_context"], name: string, isOn: boolean) =>
    change((now) => ({
      ...now,
      tool_context: { ...now.tool_context, [part]: toggled(now.tool_context[part], name, isOn) },
    }));
  const switchPlan = (isOn: boolean) =>
    deed.run(() => (isOn ? agent.enterPlanMode(slot) : agent.exitPlanMode(slot)));

  return (
    <>
      <Outcome deed={deed} />
      {reading.problem && <ProblemBox problem={reading.problem} onRetry={reading.again} />}
      <Permissions {...{ agent, slot, deed }} context={state.permission_context} />
      <section>
        <h3>{words.plan}</h3>
        <Switch name={words.planOn} isOn={plan.plan_active} isBusy={deed.isBusy} set={switchPlan} />
        {plan.current_plan_file && (
          <p class="quiet">{words.planFile(plan.current_plan_file)}</p>
        )}
      </section>
      <section>
        <h3>{words.groups}</h3>
        {toolGroups.map(({ name, description }) => (
          <Switch
            key={name}
            name={name}
            about={description}
            isOn={tools.activated_groups.includes(name)}
            isBusy={deed.isBusy}
            set={(isOn) => equip("activated_groups", name, isOn)}
          />
        ))}
      </section>
      <section>
        <h3>{words.skills}</h3>
        {skills.map((name) => (
          <Switch
            key={name}
            name={name}
            about={ownSkills.find((skill) => skill.name === name)?.description ?? ""}
            isOn={tools.activated_skills.includes(name)}
            isBusy={deed.isBusy}
            set={(isOn) => equip("activated_skills", name, isOn)}
          />
        ))}
      </section>
      <section>
        <h3>{words.all}</h3>
        <ul class="tree">
          {entriesOf(state)?.map(([name, value]) => <Tree key={name} name={name} value={value} />)}
        </ul>
      </section>
    </>
  );
}

interface SwitchProps {
  readonly name: string;
  readonly about?: string;
  readonly isOn: boolean;
  readonly isBusy: boolean;
  readonly set: (isOn: boolean) => void;
}

function Switch({ name, about = "", isOn, isBusy, set }: SwitchProps) {
  return (
    <label class="switch">
      <input
        type="checkbox"
        role="switch"
        checked={isOn}
        aria-disabled={isBusy}
        onChange={(event) => {
          // The switch shows the state of the session, so the click itself does not move it.
          event.currentTarget.checked = isOn;
          if (!isBusy) set(!isOn);
        }}
      />
      <span>
        <Visible text={name} />
        {about && <small class="quiet">{about}</small>}
      </span>
    </label>
  );
}

function toggled(names: readonly string[], name: string, isOn: boolean): readonly string[] {
  const others = names.filter((other) => other !== name);
  return isOn ? [...others, name] : others;
}
