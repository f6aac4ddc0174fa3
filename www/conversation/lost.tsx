// Shown for the URL of a session that the store does not have.
import { page } from "../app/in-use.ts";
import { said } from "../text/conversation.ts";
import { talk } from "../text/sessions.ts";

export function Lost({ onNew }: { readonly onNew: () => void }) {
  const { worker, store } = page.inUse;
  return (
    <section class="welcome" role="alert">
      <h2>{talk.lost}</h2>
      <p>{worker ? said.lostAt(worker) : said.lostHere(store)}</p>
      <button type="button" class="plain" onClick={onNew}>
        {talk.newSession}
      </button>
    </section>
  );
}
