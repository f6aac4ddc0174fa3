// What an empty session shows.
import { page } from "../app/in-use.ts";
import { Mark } from "../controls/icons.tsx";
import { talk } from "../text/sessions.ts";

export function Welcome({ onExample }: { readonly onExample: (prompt: string) => void }) {
  return (
    <section class="welcome">
      <Mark />
      <h2>{talk.welcome}</h2>
      <p>{page.inUse.privacy}</p>
      <ul>
        {talk.examples.map((prompt) => (
          <li key={prompt}>
            <button type="button" class="plain" onClick={() => onExample(prompt)}>
              {prompt}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
