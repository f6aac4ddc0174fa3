// Files that a person gives the page, and files that the page gives a person.
import type { MediaBlock } from "./part.ts";

/** The images among them, as a message holds them. */
export function imagesOf(files: readonly File[]): Promise<readonly MediaBlock[]> {
  const images = files.filter(({ type }) => type.startsWith("image/"));
  return Promise.all(
    images.map(async (file) => ({
      type: "image" as const,
      name: file.name,
      source: { type: "base64" as const, mediaType: file.type, data: await base64(file) },
    })),
  );
}

export function save(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser has begun to read it by the next turn of the loop.
  setTimeout(() => URL.revokeObjectURL(url));
}

/** A title as a file may be called. */
export function fileName(title: string): string {
  const plain = title.replace(/[^\p{L}\p{N} _-]+/gu, "").trim();
  return plain.slice(0, 60) || "session";
}

function base64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(reader.error ?? new Error("the file cannot be read"));
    reader.readAsDataURL(file);
  });
}
