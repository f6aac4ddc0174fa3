// The workspace: the files of each user, for the tools of the model and for the host.

/** What a workspace contains at first, and what the tools may not change. */
export interface WorkspaceConfig {
  /** Files that every user has until the user's own file replaces them, by path. */
  readonly templates?: Readonly<Record<string, string>>;
  /** Files and folders that the tools may not write. `agent.files` may write them. */
  readonly readOnly?: readonly string[];
  /** The largest file, in bytes of UTF-8. Default 1 MiB. */
  readonly maxFileBytes?: number;
}

/**
 * The files of a user, for the host. Paths are relative, such as `notes/today.md`; other paths are PATH_INVALID. The tools of
 * all sessions of a user see the same files. Without a user each session has files of its own: `null` then means the session of
 * `defaultSessionId`, and is ID_INVALID without one. In a store of one browser all sessions without a user share their files.
 */
export interface WorkspaceFiles {
  /** The text of a file. PATH_INVALID if there is no such file. */
  read(userId: string | null, path: string): Promise<string>;
  /** Creates or replaces a file. If two writers write it at the same moment, one gets SUPERSEDED. */
  write(userId: string | null, path: string, text: string): Promise<void>;
  /** The paths of all files, or of the files in a folder, in order. */
  list(userId: string | null, path?: string): Promise<string[]>;
  /** Deletes a file, if it exists. If there is a template for it, the template is visible again. */
  delete(userId: string | null, path: string): Promise<void>;
}
