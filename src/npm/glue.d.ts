// Written by `npm run build` from src/wasm: what Rust exports, and what it calls. `npm run check` fails if this file is out of date.

export class Agent {
  free(): void;
  /** Drops the handle without running anything: for instances that have trapped. */
  __destroy_into_raw(): number;
  afterwards(): PolledTask;
  append(request: string): PolledTask;
  asks(slot: string): PolledTask;
  branches(slot: string): PolledTask;
  call(request: string): Call;
  changePermissions(request: string): PolledTask;
  checkpoint(): void;
  childOf(tag: number): string | undefined;
  child(tag: number): Call | undefined;
  clearContext(slot: string): PolledTask;
  compact(slot: string): PolledTask;
  deleteSession(slot: string): PolledTask;
  deleteUser(request: string): PolledTask;
  enterPlanMode(slot: string): PolledTask;
  exitPlanMode(slot: string): PolledTask;
  exportSession(request: string): PolledTask;
  files(request: string): PolledTask;
  fork(request: string): PolledTask;
  hasWork(): boolean;
  history(request: string): PolledTask;
  importSession(request: string): PolledTask;
  inspect(slot: string): PolledTask;
  interruptElsewhere(request: string): PolledTask;
  interrupt(request: string): boolean;
  isNeeded(): boolean;
  listSessions(request: string): PolledTask;
  listUsers(request: string): PolledTask;
  lockName(slot: string): string;
  constructor(plain: string, ports: JsPorts);
  putState(request: string): PolledTask;
  renameSession(request: string): PolledTask;
  repairSession(slot: string): PolledTask;
  search(request: string): PolledTask;
  session(slot: string): PolledTask;
  shutDownNow(): void;
  shutDown(): void;
  state(slot: string): PolledTask;
  switchBranch(request: string): PolledTask;
  tools(request: string): PolledTask;
  undoCompaction(slot: string): PolledTask;
}

export class Call {
  private constructor();
  free(): void;
  /** Drops the handle without running anything: for instances that have trapped. */
  __destroy_into_raw(): number;
  abort(): void;
  added(known: number): string;
  emitBlock(tool_call_id: string, block: string): void;
  emit(tool_call_id: string, delta: string): void;
  failure(): unknown;
  poll(watched: boolean): string | undefined;
  shown(): Float64Array | undefined;
  state(): string | undefined;
  stop(says: string): void;
  warn(code: string, message: string): void;
  readonly id: string;
  readonly number: number;
}

export class OpenStore {
  free(): void;
  /** Drops the handle without running anything: for instances that have trapped. */
  __destroy_into_raw(): number;
  commit(batch: string, values: readonly Uint8Array[]): PolledTask;
  get(keys: string): PolledTask;
  list(prefix: string, page: string): PolledTask;
  constructor(config: string, locks: JsLocks);
}

export class PolledTask {
  private constructor();
  free(): void;
  /** Drops the handle without running anything: for instances that have trapped. */
  __destroy_into_raw(): number;
  poll(): unknown;
  readonly number: number;
}
export function checkTranscript(messages: string, dialect: string): string;
export function install(instance: JsInstance): void;
export function repairTranscript(messages: string, dialect: string): string;

export interface JsHook {
  readonly name: string;
  readonly points: readonly string[];
  known(lineage: number, unchanged: number): number;
  at(point: string, given: string, tag: number, toolCallId: string, lineage: number, added: string): unknown;
}

export interface JsNode {
  name(): string;
  isGone(node: string): boolean;
}

export interface JsResponse {
  begun(): unknown;
  readonly status: number;
  header(name: string): string | undefined;
  next(): unknown;
  done(): void;
  cancel(): void;
}

export interface JsLocks {
  acquire(name: string): JsHeld;
  isHeld(name: string): Promise<unknown>;
}

export interface JsHeld {
  readonly ready: Promise<unknown> | undefined;
  readonly lost: Promise<unknown> | undefined;
  release(): void;
}

export interface JsPorts {
  readonly model: JsModel;
  readonly fallbackModel: JsModel | undefined;
  readonly compactionModel: JsModel | undefined;
  readonly memoryModel: JsModel | undefined;
  readonly tokenCounter: Function | undefined;
  readonly store: JsStore;
  readonly tools: readonly JsTool[];
  readonly hooks: readonly JsHook[];
  readonly locks: JsLocks;
  readonly storeLocks: JsLocks;
  readonly node: JsNode;
}

export interface JsModel {
  id(tag: number): string;
  window(tag: number): number | undefined;
  provider(tag: number): string | undefined;
  send(tag: number, around: string, body: Uint8Array): JsResponse;
  known(lineage: number, unchanged: number): number;
  ask(tag: number, lineage: number, added: string, rest: string, tools: string | undefined): JsDeltas;
}

export interface JsDeltas {
  next(): unknown;
  cancel(): void;
}

export interface JsStore {
  get(keys: string): unknown;
  list(prefix: string, page: string): unknown;
  commit(batch: string, values: readonly Uint8Array[]): unknown;
}

export interface JsRecord {
  readonly key: unknown;
  readonly value: unknown;
  readonly revision: unknown;
}

export interface JsTool {
  run(tag: number, id: string, input: unknown): JsRun;
  judge(tag: number, id: string, input: unknown, rules: string): JsRun;
}

export interface JsRun {
  readonly output: Promise<unknown>;
  cancel(): void;
}

export interface JsInstance {
  wake(task: number): void;
  report(place: string): void;
  thawed(): Promise<unknown> | undefined;
  wait(promise: Promise<unknown>): JsWait;
  sleep(ms: number): JsWait;
}

export interface JsWait {
  poll(task: number): number;
  readonly value: unknown;
  cancel(): void;
}
