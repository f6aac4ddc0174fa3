// A wasm file, imported as a compiled module.

declare module "*.wasm" {
  const module: WebAssembly.Module;
  export default module;
}
