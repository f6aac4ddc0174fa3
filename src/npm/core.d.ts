// What the glue of wasm-bindgen gives us: `src/wasm` has the other half of each of these.

import type { Wait } from "./wait.js";

/**
 * A fresh, independent instance whose exports are what `guard` makes of them; `initSync` must come first. An instance of the
 * first part alone calls `fetchRest` when it needs more, and `complete` must have been called when that returns.
 */
export type Instantiate = (guard: (exports: Record<string, unknown>) => Record<string, unknown>, fetchRest: () => void) => Core;
export const instantiate: Instantiate;

/** The build that glue and wasm are of; the wasm says it too, in its custom section `lockgate`. */
export const SEAL: string;

/** What an instance is served with. None of it may run anybody's code before it returns. */
export interface Serves {
  wake(task: number): void;
  thawed(): Promise<void> | undefined;
  report(place: string): void;
  wait(promise: Promise<unknown>): Wait;
  /** Can be cancelled. */
  sleep(ms: number): Wait;
}

export interface Core {
  initSync(options: { module: WebAssembly.Module }): Record<string, unknown>;
  /** Adds the rest to an instance of the first part. */
  complete(rest: WebAssembly.Module): void;
  /** Lets go of the memory. */
  release(): void;
  install(instance: Serves): void;
  /** Only in the build for tests. */
  trap?(says?: string): void;
  /** Only in the build for tests. */
  trapLater?(): void;
  checkTranscript(messages: string, dialect: string): string;
  repairTranscript(messages: string, dialect: string): string;
  readonly Agent: new (plain: string, ports: unknown) => CoreAgent;
  readonly OpenStore: new (config: string, ports: unknown) => CoreStore;
}

/** An object in wasm memory. */
export interface CoreObject {
  free(): void;
  /** Whether it holds something that no store has: turns that the store would not take, or work for later. */
  isNeeded?(): boolean;
  /** Lets go of the object without running anything: for instances that have trapped. */
  __destroy_into_raw(): number;
}

export interface CoreTask extends CoreObject {
  readonly number: number;
  poll(): unknown;
}

export interface CoreCall extends CoreObject {
  readonly number: number;
  readonly id: string;
  poll(watched: boolean): string | undefined;
  failure(): unknown;
  stop(says: string): void;
  abort(): void;
  emit(toolCallId: string, delta: string): void;
  warn(code: string, message: string): void;
  state(): string | undefined;
  shown(): Float64Array | undefined;
  added(known: number): string;
}

export interface CoreAgent extends CoreObject {
  call(request: Uint8Array): CoreCall;
  interrupt(request: string): boolean;
  interruptElsewhere(request: string): CoreTask;
  shutDown(): void;
  shutDownNow(): void;
  state(slot: string): CoreTask;
  history(request: string): CoreTask;
  deleteSession(slot: string): CoreTask;
  asks(slot: string): CoreTask;
  clearContext(slot: string): CoreTask;
  compact(slot: string): CoreTask;
  undoCompaction(slot: string): CoreTask;
  inspect(slot: string): CoreTask;
  enterPlanMode(slot: string): CoreTask;
  exitPlanMode(slot: string): CoreTask;
  renameSession(request: string): CoreTask;
  putState(request: string): CoreTask;
  changePermissions(request: string): CoreTask;
  append(request: string): CoreTask;
  repairSession(slot: string): CoreTask;
  session(slot: string): CoreTask;
  exportSession(request: string): CoreTask;
  importSession(request: string): CoreTask;
  listSessions(request: string): CoreTask;
  listUsers(request: string): CoreTask;
  deleteUser(request: string): CoreTask;
  branches(slot: string): CoreTask;
  switchBranch(request: string): CoreTask;
  fork(request: string): CoreTask;
  search(request: string): CoreTask;
  childOf(tag: number): string | undefined;
  child(tag: number): CoreCall | undefined;
  hasWork(): boolean;
  afterwards(): CoreTask;
  lockName(slot: string): string;
  files(request: string): CoreTask;
}

export interface CoreStore extends CoreObject {
  get(keys: readonly string[]): CoreTask;
  list(prefix: string, after?: string, limit?: number): CoreTask;
  commit(batch: unknown): CoreTask;
}
