// Shows embedded images. Media with a URL is only named: it loads when the user opens the link.
import type { MediaBlock } from "../session/part.ts";
import { isSafe } from "../markdown/inline.tsx";
import { said } from "../text/conversation.ts";
import { talk } from "../text/sessions.ts";

const shown = /^image\/(?:png|jpeg|gif|webp|avif|bmp|svg\+xml)$/;

export function MediaView({ media }: { readonly media: MediaBlock }) {
  const { source, type } = media;
  const name = media.name ?? talk.unnamed;
  if (source.type === "base64" && type === "image" && shown.test(source.mediaType))
    return <img class="media" src={`data:${source.mediaType};base64,${source.data}`} alt={name} />;
  if (source.type === "url" && isSafe(source.url)) {
    return (
      <p class="media remote">
        <span>{said.remoteImage(new URL(source.url).host)}</span>
        <a href={source.url} target="_blank" rel="noopener noreferrer">
          {said.openImage}
        </a>
      </p>
    );
  }
  return <p class="media remote">{said.file(type, name)}</p>;
}
