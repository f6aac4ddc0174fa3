// The settings for the model: provider, address, name, key, and the connection test.
import { useRef, useState } from "preact/hooks";
import { settings } from "../text/settings.ts";
import type { Choices, Key } from "./choices.ts";
import { noKey } from "./choices.ts";
import { readKey } from "./stored-choices.ts";
import type { FormProps } from "./compaction-form.tsx";
import { tryModel } from "./connection-test.ts";
import type { Finding } from "./connection-test.ts";
import { Group, NumberField } from "./fields.tsx";
import { hostOf } from "./in-use.ts";
import { presetOf, presets } from "./presets.ts";

const words = settings.model;
const findings = settings.findings;

interface ModelFormProps extends FormProps {
  readonly apiKey: Key;
  readonly setKey: (key: Key) => void;
}

export function ModelForm({ choices, change, apiKey, setKey }: ModelFormProps) {
  const choose = (id: string) => {
    const { provider, baseUrl, model } = presetOf(id);
    change({ preset: id, provider, baseUrl, model, contextWindow: null, needsKey: false });
    setKey(readKey({ ...choices, baseUrl }));
  };
  const write = (baseUrl: string) => {
    change({ baseUrl });
    // A key is sent only to the host that it was typed for.
    if (hostOf(baseUrl) !== hostOf(choices.baseUrl)) setKey(noKey);
  };
  const isDemo = choices.provider === "demo";
  return (
    <Group title={words.title}>
      <label class="labelled">
        <span>{words.preset}</span>
        <select value={choices.preset} onChange={(event) => choose(event.currentTarget.value)}>
          {(["offline", "here", "away"] as const).map((where) => (
            <optgroup key={where} label={words.groups[where]}>
              {presets
                .filter((preset) => preset.where === where)
                .map(({ id, name }) => (
                  <option key={id} value={id}>
                    {name}
                  </option>
                ))}
            </optgroup>
          ))}
        </select>
      </label>
      {isDemo && <p class="quiet">{words.demo}</p>}
      {!isDemo && (
        <>
          <Line label={words.address} mode="url" value={choices.baseUrl} onInput={write} />
          <div class="pair">
            <Line label={words.name} value={choices.model} onInput={(model) => change({ model })} />
            <NumberField
              label={words.window}
              hint={words.windowHint}
              min={1}
              value={choices.contextWindow}
              onChange={(contextWindow) => change({ contextWindow })}
            />
          </div>
          <KeyField
            {...{ apiKey, setKey }}
            isNeeded={choices.needsKey}
            isLocal={presetOf(choices.preset).where === "here"}
          />
        </>
      )}
      <Connection choices={choices} apiKey={apiKey} />
    </Group>
  );
}

interface LineProps {
  readonly label: string;
  readonly mode?: "text" | "url";
  readonly value: string;
  readonly onInput: (value: string) => void;
}

function Line({ label, mode = "text", value, onInput }: LineProps) {
  return (
    <label class="labelled">
      <span>{label}</span>
      <input
        type="text"
        inputMode={mode}
        value={value}
        required
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => onInput(currentTarget.value.trim())}
      />
    </label>
  );
}

interface KeyFieldProps extends Pick<ModelFormProps, "apiKey" | "setKey"> {
  readonly isLocal: boolean;
  readonly isNeeded: boolean;
}

function KeyField({ apiKey, setKey, isLocal, isNeeded }: KeyFieldProps) {
  const isMissing = isNeeded && apiKey.value === "";
  const note = apiKey.isKept ? words.warning : isMissing ? words.needed : words.inMemory;
  return (
    <>
      <label class="labelled">
        <span>{words.key}</span>
        <input
          type="password"
          // Password managers would store the key, even if the user does not want it stored.
          autocomplete="off"
          value={apiKey.value}
          placeholder={isLocal ? words.noKey : ""}
          onInput={({ currentTarget }) => setKey({ ...apiKey, value: currentTarget.value.trim() })}
        />
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={apiKey.isKept}
          onChange={({ currentTarget }) => setKey({ ...apiKey, isKept: currentTarget.checked })}
        />
        {words.keepKey}
      </label>
      <p class={apiKey.isKept || isMissing ? "warn" : "quiet"}>{note}</p>
    </>
  );
}

function Connection({ choices, apiKey }: { readonly choices: Choices; readonly apiKey: Key }) {
  const [finding, setFinding] = useState<Finding | "asking" | null>(null);
  const stop = useRef<AbortController | null>(null);
  const test = async () => {
    stop.current?.abort();
    const controller = new AbortController();
    stop.current = controller;
    setFinding("asking");
    const found = await tryModel(choices, apiKey, controller.signal);
    if (stop.current === controller) setFinding(controller.signal.aborted ? null : found);
  };
  const isAsking = finding === "asking";
  return (
    <div class="connection">
      <button
        type="button"
        class="plain"
        onClick={() => (isAsking ? stop.current?.abort() : void test())}
      >
        {isAsking ? words.stop : words.test}
      </button>
      <div class="finding" role="status" data-kind={isAsking ? "asking" : finding?.kind}>
        {isAsking ? words.testing : finding && <Found finding={finding} choices={choices} />}
      </div>
    </div>
  );
}

function Found({ finding, choices }: { readonly finding: Finding; readonly choices: Choices }) {
  const [line, ...more] = linesOf(finding, choices);
  return (
    <>
      <strong>{line}</strong>
      {more.filter(Boolean).map((text) => (
        <p key={text}>{text}</p>
      ))}
    </>
  );
}

/** The lines of a finding: the result, what the user can do, and the error message. */
function linesOf(finding: Finding, { baseUrl, model, preset }: Choices): readonly string[] {
  const host = hostOf(baseUrl);
  switch (finding.kind) {
    case "ready":
      return [findings.ready(finding.seconds.toFixed(1), finding.said)];
    case "gone":
      return [findings.gone(host)];
    case "cors":
      return [findings.cors(host, location.origin), fixOf(preset)];
    case "model": {
      const names = finding.models.slice(0, 8).join(", ");
      return [findings.model(model), names && findings.models(names), finding.detail];
    }
    case "slow":
    case "lost":
      return [findings[finding.kind](host)];
    case "offline":
    case "mixed":
      return [findings[finding.kind]];
    default:
      return [findings[finding.kind], finding.detail];
  }
}

function fixOf(preset: string): string {
  const { fixes } = settings;
  const own = Object.entries(fixes).find(([name]) => name === preset)?.[1];
  return (own ?? fixes.other)(location.origin);
}
