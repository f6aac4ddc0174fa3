// The form fields of the settings.
import type { ComponentChildren } from "preact";

interface NumberFieldProps {
  readonly label: string;
  readonly hint?: string;
  readonly value: number | null;
  readonly min?: number;
  readonly onChange: (value: number | null) => void;
}

/** A field for a whole number. It may be empty if it has a hint. */
export function NumberField({ label, hint, value, min = 0, onChange }: NumberFieldProps) {
  const read = (text: string) => (/^\d+$/.test(text) ? Number(text) : null);
  return (
    <label class="labelled">
      <span>{label}</span>
      <input
        type="number"
        inputMode="numeric"
        min={min}
        step={1}
        value={value ?? ""}
        placeholder={hint ?? ""}
        required={hint === undefined}
        onInput={({ currentTarget }) => onChange(read(currentTarget.value))}
      />
    </label>
  );
}

interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly options: Readonly<Record<T, string>>;
  readonly onChange: (value: T) => void;
}

export function Choice<T extends string>({ label, value, options, onChange }: ChoiceProps<T>) {
  return (
    <label class="labelled">
      <span>{label}</span>
      <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value as T)}>
        {(Object.entries(options) as [T, string][]).map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

interface GroupProps {
  readonly title: string;
  readonly children: ComponentChildren;
}

export function Group({ title, children }: GroupProps) {
  return (
    <fieldset>
      <legend>{title}</legend>
      {children}
    </fieldset>
  );
}
