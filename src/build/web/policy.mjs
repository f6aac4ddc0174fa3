// The Content-Security-Policy of the web UI. It is sent as a header and written into the built page.

const directives = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  // Users may enter the URL of any model, also one on their own network.
  "connect-src 'self' https: http:",
  "font-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
];

/** The policy as a header. */
export const policy = directives.join("; ");

/** The policy as a meta tag, where browsers do not support `frame-ancestors`. */
export const policyInPage = directives
  .filter((directive) => !directive.startsWith("frame-ancestors"))
  .join("; ");
