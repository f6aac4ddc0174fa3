// Files that the user gives to the page, and downloads.
import type { MediaBlock } from "../session/part.ts";

/** The images among the files, as blocks of a message. */
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
  // In the next task the browser has started to read the URL.
  setTimeout(() => URL.revokeObjectURL(url));
}

/** A file name made from a title. */
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
