// Chooses the user whose sessions are shown: the anonymous user or a named one.
import { useState } from "preact/hooks";
import { talk } from "../text/sessions.ts";

export interface UserSwitchProps {
  readonly userId: string | null;
  readonly users: readonly string[];
  readonly onSwitch: (userId: string | null) => void;
}

/** Values of the list. A userId may be any text, so it gets a prefix that the two other values do not have. */
const anonymous = "anonymous";
const another = "another";
const named = (userId: string) => `=${userId}`;

export function UserSwitch({ userId, users, onSwitch }: UserSwitchProps) {
  const [name, setName] = useState<string | null>(null);
  const choose = (value: string) => {
    if (value === another) return setName("");
    setName(null);
    onSwitch(value === anonymous ? null : value.slice(1));
  };
  const add = (event: Event) => {
    event.preventDefault();
    if (name?.trim()) onSwitch(name.trim());
    setName(null);
  };
  if (name !== null) {
    return (
      <form class="user" onSubmit={add} onKeyDown={(event) => event.key === "Escape" && setName(null)}>
        <input
          aria-label={talk.userName}
          placeholder={talk.userName}
          value={name}
          ref={(field) => field?.focus()}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <button type="submit" class="plain">
          {talk.useUser}
        </button>
      </form>
    );
  }
  const all = userId === null || users.includes(userId) ? users : [...users, userId];
  return (
    <label class="user">
      <span>{talk.user}</span>
      <select
        value={userId === null ? anonymous : named(userId)}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        <option value={anonymous}>{talk.anonymous}</option>
        {all.map((user) => (
          <option key={user} value={named(user)}>
            {user}
          </option>
        ))}
        <option value={another}>{talk.addUser}</option>
      </select>
    </label>
  );
}
