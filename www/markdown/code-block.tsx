// Code as it was written, with its language and a button that copies it.
import { useState } from "preact/hooks";
import { said } from "../text/conversation.ts";
import { visible } from "../controls/hidden-chars.tsx";

export function CodeBlock({ language, text }: { readonly language: string; readonly text: string }) {
  return (
    <div class="code" dir="ltr">
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
  const [told, setTold] = useState<string>(said.copy);
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setTold(said.copied),
      // The page may lack the permission to copy.
      () => setTold(said.notCopied),
    );
  return (
    <button type="button" class="link" onClick={copy} onBlur={() => setTold(said.copy)}>
      {told}
    </button>
  );
}
