// Who an agent is among those that share its store, and which of the others are known to be gone.

/** An agent as other nodes know it. */
export interface Node {
  /** The same each time. */
  name(): string;
  /** Whether another is known to be gone: a process of this machine that has ended. */
  isGone(name: string): boolean;
}

interface Process {
  readonly pid?: number;
  kill?(pid: number, signal: 0): unknown;
  getBuiltinModule?(name: "node:os"): { hostname(): string } | undefined;
}

/** A node of its own; it is named when it is first asked, since a Worker has no chance before its first request. */
export function newNode(): Node {
  let name: string | undefined;
  return {
    name: () => (name ??= `${home()}${Array.from(crypto.getRandomValues(new Uint8Array(8)), hex).join("")}`),
    isGone(other) {
      const here = home();
      const [, machine, pid] = /^(.*)\.(\d+)\.[0-9a-f]+$/.exec(other) ?? [];
      return machine !== undefined && here.startsWith(`${machine}.`) && hasEnded(Number(pid));
    },
  };
}

/** The machine and the process, where there are any: what a restarted process knows its predecessor by. */
function home(): string {
  const { pid } = host();
  const machine = host().getBuiltinModule?.("node:os")?.hostname();
  return pid === undefined || machine === undefined ? "" : `${machine}.${pid}.`;
}

function hasEnded(pid: number): boolean {
  try {
    host().kill?.(pid, 0);
    return false;
  } catch (error) {
    return (error as { code?: unknown }).code === "ESRCH";
  }
}

function host(): Process {
  return (globalThis as { process?: Process }).process ?? {};
}

function hex(byte: number): string {
  return byte.toString(16).padStart(2, "0");
}
