// The settings for compaction.
import { settings } from "../text/settings.ts";
import type { Choices } from "./choices.ts";
import { Choice, Group, NumberField } from "./fields.tsx";

const words = settings.compaction;

export interface FormProps {
  readonly choices: Choices;
  readonly change: (next: Partial<Choices>) => void;
}

export function CompactionForm({ choices, change }: FormProps) {
  const { compaction } = choices;
  const set = (next: Partial<Choices["compaction"]>) =>
    change({ compaction: { ...compaction, ...next } });
  return (
    <Group title={words.title}>
      <Choice
        label={words.when}
        value={compaction.when}
        options={words.whens}
        onChange={(when) => set({ when })}
      />
      {compaction.when === "trigger" && (
        <div class="pair">
          <NumberField
            label={words.messages}
            value={compaction.triggerMessages}
            onChange={(n) => set({ triggerMessages: n ?? 0 })}
          />
          <NumberField
            label={words.tokens}
            hint={words.tokensHint}
            value={compaction.triggerTokens}
            onChange={(triggerTokens) => set({ triggerTokens })}
          />
        </div>
      )}
      {compaction.when !== "never" && (
        <NumberField
          label={words.keep}
          min={1}
          value={compaction.keepMessages}
          onChange={(n) => set({ keepMessages: n ?? 1 })}
        />
      )}
    </Group>
  );
}
