// A wasm file whose memory may not grow past a limit. Copied into the project.

/** The same module with a maximum of pages (of 64 KiB) for its memory. */
export function capped(wasm, pages) {
  const sections = [];
  for (let at = 8; at < wasm.length; ) {
    const id = wasm[at];
    const { value: length, next } = number(wasm, at + 1);
    sections.push({ id, body: wasm.subarray(next, next + length) });
    at = next + length;
  }
  const parts = sections.flatMap(({ id, body }) => {
    const content = id === 5 ? limited(body, pages) : body;
    return [Uint8Array.of(id), bytesOf(content.length), content];
  });
  return Buffer.concat([wasm.subarray(0, 8), ...parts]);
}

// One memory: the number of memories, its flags, its first size, and now its last.
function limited(body, pages) {
  const { value: first } = number(body, 2);
  if (body[0] !== 1 || body[1] !== 0 || first >= pages) throw new Error("the memory is not as expected");
  return Buffer.concat([Uint8Array.of(1, 1), bytesOf(first), bytesOf(pages)]);
}

function number(bytes, at) {
  let value = 0;
  for (let shift = 0; ; shift += 7, at++) {
    value |= (bytes[at] & 0x7f) << shift;
    if (bytes[at] < 0x80) return { value, next: at + 1 };
  }
}

function bytesOf(value) {
  const bytes = [];
  for (; value > 0x7f; value >>>= 7) bytes.push((value & 0x7f) | 0x80);
  return Uint8Array.from([...bytes, value]);
}
