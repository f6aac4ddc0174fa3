// What a session shows in which nothing was said yet.
import { Mark } from "./icons.tsx";
import { talk } from "./text/talk.ts";

export function Welcome({ onExample }: { readonly onExample: (prompt: string) => void }) {
  return (
    <section class="welcome">
      <Mark />
      <h2>{talk.welcome}</h2>
      <p>{talk.about}</p>
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
