// What the page may do, said once: served as a header, and written into the built page.

const directives = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  // A person may type the address of any model, also of one on their own network.
  "connect-src 'self' https: http:",
  "font-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
];

/** As a header. */
export const policy = directives.join("; ");

/** As a meta tag, where browsers take no word about frames. */
export const policyInPage = directives
  .filter((directive) => !directive.startsWith("frame-ancestors"))
  .join("; ");
