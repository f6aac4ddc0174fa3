// What the tools of a session may do: the mode, and rules that can be added and removed.
import { useRef } from "preact/hooks";
import type { PermissionContext, PermissionMode, Rule } from "lockgate";
import { Bin } from "../controls/icons.tsx";
import { inside } from "../text/inspect.ts";
import { Visible } from "../controls/hidden-chars.tsx";
import type { ViewProps } from "./panel.tsx";
import type { Deed } from "../controls/agent-hooks.ts";

const words = inside.state;
const lists = { allow: "allow_rules", ask: "ask_rules", deny: "deny_rules" } as const;

interface PermissionsProps extends Pick<ViewProps, "agent" | "slot"> {
  readonly context: PermissionContext;
  readonly deed: Deed;
}

export function Permissions({ agent, slot, context, deed }: PermissionsProps) {
  const form = useRef<HTMLFormElement>(null);
  const rules = [...context.deny_rules, ...context.ask_rules, ...context.allow_rules];
  const change = (next: (now: PermissionContext) => PermissionContext) =>
    deed.run(async () => {
      const { permission_context } = await agent.getAgentState(slot);
      await agent.replacePermissions(slot, next(permission_context));
    });
  const add = (event: SubmitEvent) => {
    event.preventDefault();
    if (!form.current) return;
    const rule = ruleOf(new FormData(form.current));
    const list = lists[rule.behavior];
    change((now) => ({ ...now, [list]: [...now[list].filter((r) => !same(r, rule)), rule] }));
    form.current.reset();
    form.current.querySelector("input")?.focus();
  };
  const remove = (rule: Rule) => {
    const list = lists[rule.behavior];
    change((now) => ({ ...now, [list]: now[list].filter((other) => !same(other, rule)) }));
  };
  return (
    <section>
      <h3>{words.permissions}</h3>
      <label class="labelled">
        <span>{words.mode}</span>
        <select
          value={context.mode}
          onChange={({ currentTarget }) =>
            deed.run(() => agent.setPermissionMode(slot, currentTarget.value as PermissionMode))
          }
        >
          {Object.entries(words.modes).map(([mode, text]) => (
            <option key={mode} value={mode}>
              {text}
            </option>
          ))}
        </select>
      </label>
      {rules.length ? (
        <ul class="rules" aria-label={words.rules}>
          {rules.map((rule) => (
            <li key={`${rule.behavior} ${nameOf(rule)}`} data-behavior={rule.behavior}>
              <b>{words.behaviors[rule.behavior]}</b>{" "}
              <code>
                <Visible text={nameOf(rule)} />
              </code>
              <button
                type="button"
                class="bare"
                aria-label={words.remove(nameOf(rule))}
                onClick={() => remove(rule)}
              >
                <Bin />
              </button>
            </li>
          ))}
        </ul>
      ) : (
        <p class="quiet">{words.noRules}</p>
      )}
      <form class="new-rule" ref={form} onSubmit={add}>
        <label class="labelled">
          <span>{words.behavior}</span>
          <select name="behavior">
            {Object.entries(words.behaviors).map(([behavior, text]) => (
              <option key={behavior} value={behavior}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <label class="labelled">
          <span>{words.tool}</span>
          <input name="tool" required placeholder="send_letter" autocomplete="off" />
        </label>
        <label class="labelled">
          <span>{words.content}</span>
          <input name="content" autocomplete="off" />
        </label>
        <button class="plain">{words.add}</button>
      </form>
    </section>
  );
}

function ruleOf(form: FormData): Rule {
  const behavior = (["allow", "ask", "deny"] as const).find((b) => b === form.get("behavior"));
  const content = String(form.get("content") ?? "").trim();
  return {
    tool_name: String(form.get("tool") ?? "").trim(),
    rule_content: content || null,
    behavior: behavior ?? "ask",
    source: "session",
  };
}

function nameOf({ tool_name, rule_content }: Rule): string {
  return rule_content === null ? tool_name : `${tool_name}(${rule_content})`;
}

function same(one: Rule, other: Rule): boolean {
  return one.behavior === other.behavior && nameOf(one) === nameOf(other);
}
