// The settings for the store, and how safely it keeps sessions.
import { useState } from "preact/hooks";
import type { Agent } from "lockgate";
import { page } from "../app/in-use.ts";
import { Unread } from "../inspect/context-view.tsx";
import { useReading } from "../controls/agent-hooks.ts";
import { settings } from "../text/settings.ts";
import type { FormProps } from "./compaction-form.tsx";
import { Choice, Group } from "./fields.tsx";

const words = settings.storage;

export function StorageForm({ agent, choices, change }: FormProps & { readonly agent: Agent }) {
  return (
    <Group title={words.title}>
      <Choice
        label={words.store}
        value={choices.store}
        options={words.stores}
        onChange={(store) => change({ store })}
      />
      <p class="quiet">{words.elsewhere}</p>
      <Report agent={agent} />
    </Group>
  );
}

/** The report of the store that is in use now. */
export function Report({ agent }: { readonly agent: Agent }) {
  const reading = useReading(() => agent.storage(), [agent]);
  const [answer, setAnswer] = useState("");
  if (!reading.value) return <Unread problem={reading.problem} onRetry={reading.again} />;
  const { durability, usage, quota, warnings } = reading.value;
  const persist = async () => {
    const isGranted = await navigator.storage.persist();
    setAnswer(isGranted ? words.granted : words.refused);
    reading.again();
  };
  return (
    <div class="report" data-durability={durability}>
      <strong>{(page.inUse.worker ? words.durabilityAtWorker : words.durability)[durability]}</strong>
      {usage !== null && quota ? (
        <label class="used">
          <meter aria-label={words.usage} min={0} max={quota} high={quota * 0.8} value={usage} />
          <span class="quiet">{words.used(bytes(usage), bytes(quota))}</span>
        </label>
      ) : (
        <p class="quiet">{page.inUse.worker ? words.unknownAtWorker : words.unknown}</p>
      )}
      {warnings.length > 0 && (
        <ul class="warnings">
          {warnings.map((warning) => (
            <li key={warning}>{warning}</li>
          ))}
        </ul>
      )}
      {durability === "may-be-evicted" && !page.inUse.worker && "storage" in navigator && (
        <button type="button" class="plain" onClick={() => void persist()}>
          {words.persist}
        </button>
      )}
      <p class="done" role="status">
        {answer}
      </p>
    </div>
  );
}

const units = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;

export function bytes(n: number): string {
  const at = n < 1 ? 0 : Math.min(Math.floor(Math.log10(n) / 3), units.length - 1);
  const unit = units[at] ?? "byte";
  return new Intl.NumberFormat("en", {
    style: "unit",
    unit,
    maximumSignificantDigits: 3,
  }).format(n / 1000 ** at);
}
