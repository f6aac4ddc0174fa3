// Code as it was written, with its language and a button that copies it.
import { useState } from "preact/hooks";
import { talk } from "./text/talk.ts";
import { visible } from "./hidden-chars.tsx";

export function CodeBlock({ language, text }: { readonly language: string; readonly text: string }) {
  return (
    <div class="code">
      <header>
        <span>{language}</span>
        <CopyButton text={text} />
      </header>
      <pre tabIndex={0}>
        <code>{visible(text)}</code>
      </pre>
    </div>
  );
}

export function CopyButton({ text }: { readonly text: string }) {
  const [told, setTold] = useState<string>(talk.copy);
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setTold(talk.copied),
      // A page without the right to copy says so.
      () => setTold(talk.notCopied),
    );
  return (
    <button type="button" class="link" onClick={copy} onBlur={() => setTold(talk.copy)}>
      {told}
    </button>
  );
}
