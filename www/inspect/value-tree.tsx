// A value as a tree. Folded branches are not drawn.
import { useState } from "preact/hooks";
import { inside } from "../text/inspect.ts";
import { Visible } from "../controls/hidden-chars.tsx";

export function Tree({ name, value }: { readonly name: string; readonly value: unknown }) {
  const entries = entriesOf(value);
  if (!entries) {
    return (
      <li>
        <span class="name">{name}</span> <Leaf value={value} />
      </li>
    );
  }
  return <Branch name={name} entries={entries} />;
}

type Entries = readonly (readonly [name: string, value: unknown])[];

function Branch({ name, entries }: { readonly name: string; readonly entries: Entries }) {
  const [isOpen, setOpen] = useState(false);
  const [nShown, setNShown] = useState(50);
  const nHidden = Math.max(entries.length - nShown, 0);
  return (
    <li>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span class="name">{name}</span>{" "}
          <span class="quiet">{inside.state.items(entries.length)}</span>
        </summary>
        {isOpen && (
          <ul class="tree">
            {nHidden > 0 && (
              <li>
                <button type="button" class="link" onClick={() => setNShown((n) => n * 4)}>
                  {inside.context.earlier(nHidden)}
                </button>
              </li>
            )}
            {entries.slice(nHidden).map(([key, value]) => (
              <Tree key={key} name={key} value={value} />
            ))}
          </ul>
        )}
      </details>
    </li>
  );
}

function Leaf({ value }: { readonly value: unknown }) {
  if (typeof value === "string") {
    return (
      <span class="leaf">
        “<Visible text={value} />”
      </span>
    );
  }
  return <span class="leaf">{JSON.stringify(value) ?? "undefined"}</span>;
}

/** The entries of an object or list; null for an empty one and for other values. */
export function entriesOf(value: unknown): Entries | null {
  if (typeof value !== "object" || value === null) return null;
  const entries = Object.entries(value);
  return entries.length ? entries : null;
}
