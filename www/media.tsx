// Images that are here are shown; what lies elsewhere is named, and loaded by nobody but the person who opens it.
import type { MediaBlock } from "./part.ts";
import { isSafe } from "./inline.tsx";
import { said } from "./text/said.ts";
import { talk } from "./text/talk.ts";

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
