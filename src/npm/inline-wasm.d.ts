// The wasm as text: `npm run build` writes the module.

/** core.wasm, deflated, in base64. */
export const WASM: string;
