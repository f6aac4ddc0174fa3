// The name of this process as a node: one of several agents that share a store.

/** An agent as other nodes see it. */
export interface Node {
  /** The name of this node. It never changes. */
  name(): string;
  /** Whether the node of this name has certainly ended: it was a process of this machine, and the process does not exist any more. */
  isGone(name: string): boolean;
}

interface Process {
  readonly pid?: number;
  kill?(pid: number, signal: 0): unknown;
  getBuiltinModule?(name: "node:os"): { hostname(): string } | undefined;
}

/** A new node. Its name is made on first use, because a Worker has no random numbers before its first request. */
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

/** Machine and process, or "" where there are none. A restarted process recognises its predecessor by it. */
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
