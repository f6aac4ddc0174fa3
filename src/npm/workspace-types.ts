// The workspace: files of each user, for the model's tools and for the host.

/** How a workspace begins, and what of it the tools may not change. */
export interface WorkspaceConfig {
  /** Files that everybody has until they write their own, by path. */
  readonly templates?: Readonly<Record<string, string>>;
  /** Files and folders that the tools may not write. `agent.files` may. */
  readonly readOnly?: readonly string[];
  /** The largest file, in bytes of UTF-8. Default 1 MiB. */
  readonly maxFileBytes?: number;
}

/**
 * A user's files, for the host. Paths are relative, such as `notes/today.md`; any other is PATH_INVALID. The tools of
 * all sessions of a user see the same files. Without a user each session has its own, unless the store is one
 * browser's: then null is the session of `defaultSessionId`, and ID_INVALID where there is none.
 */
export interface WorkspaceFiles {
  /** The file's text; PATH_INVALID if there is none. */
  read(userId: string | null, path: string): Promise<string>;
  /** Makes or replaces a file. Of two who write it at the same moment, one gets SUPERSEDED. */
  write(userId: string | null, path: string, text: string): Promise<void>;
  /** The paths of all files, or of those below a folder, in order. */
  list(userId: string | null, path?: string): Promise<string[]>;
  /** Deletes a file, if there is one; where there is a template, that is back. */
  delete(userId: string | null, path: string): Promise<void>;
}
