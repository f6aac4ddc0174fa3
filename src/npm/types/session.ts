// Sessions, branches and users: how they are named, listed and found.

import type { Msg } from "./message.js";

/** Names a session: a user and the id of a session of that user. Without a userId, or with null, the user is anonymous; two anonymous sessions share nothing, unless the store belongs to one browser. The member `userId: undefined` is refused with ID_INVALID: write null, or leave it out. */
export interface Slot {
  /** The id of the session, unique for its user: 1 to 256 bytes of UTF-8 without control characters. */
  readonly sessionId: string;
  /** The id of the user: 1 to 256 bytes of UTF-8 without control characters. Null or absent: the anonymous user. */
  readonly userId?: string | null;
}

/** A session as lists show it. Lists are newest first. For the next page, pass the last `cursor` as `after`; a page with fewer than `limit` sessions is the last one. */
export interface SessionInfo {
  /** The place of the session in the list. It changes when the session changes. */
  readonly cursor: string;
  /** The id of the session. */
  readonly sessionId: string;
  /** The id of the user. Null is the anonymous user. */
  readonly userId: string | null;
  /** The title: the first line of the first message, at most 80 characters, until `renameSession` sets another. */
  readonly title: string;
  /** The first line of the last message that has text, at most 80 characters. Not the summary of a compaction. */
  readonly summary: string;
  /** The number of messages on the current branch, including those that the model does not see any more. */
  readonly messages: number;
  /** When the session last changed, in RFC 3339, UTC. */
  readonly updatedAt: string;
  /** When the session was created, in RFC 3339, UTC. */
  readonly createdAt: string;
  /** Whether a call of the session runs now. */
  readonly running: boolean;
  /** Whether tool calls wait for an approval or a result: see `asks`. */
  readonly asking: boolean;
  /** Whether a crash, a shutdown or a lost owner has cut off the last turn of the current branch: `resume` goes on with it. False after a stop or an error (use `resend`), and while an approval waits. */
  readonly interrupted: boolean;
  /** The number of branches besides the current one. */
  readonly branches: number;
}

/** A user that has sessions. For the next page of a list, pass the last `cursor` as `after`. */
export interface UserInfo {
  /** The id of the user. Null is the anonymous user. */
  readonly userId: string | null;
  /** The number of sessions of the user. */
  readonly sessions: number;
  /** When a session of the user last changed, in RFC 3339, UTC. */
  readonly updatedAt: string;
  /** The place of the user in the list. */
  readonly cursor: string;
}

/** A branch of a session. */
export interface Branch {
  /** The id of the branch. It changes when the conversation continues on this branch. */
  readonly id: string;
  /** The branch from which this one starts; null for the oldest branch. */
  readonly parent: string | null;
  /** The question that this branch answers: the one where it starts, or the last question. */
  readonly messageId: string;
  /** When the first answer of this branch was made, in RFC 3339, UTC. */
  readonly createdAt: string;
  /** The text of its last message, as one line. */
  readonly text: string;
  /** Whether the session continues on this branch. */
  readonly current: boolean;
}

/** A message that a search found. Scores can be compared within one search only. */
export interface SearchHit {
  /** The session of the message. */
  readonly slot: Slot;
  /** The id of the message. */
  readonly messageId: string;
  /** The author of the message. */
  readonly role: Msg["role"];
  /** When the message was made, in RFC 3339, UTC. */
  readonly at: string;
  /** The part of the message where most of the words of the query are close together. */
  readonly excerpt: string;
  /** How well the message fits. Higher is better. */
  readonly score: number;
}

/** Where a search looks, and how many messages it returns. */
export interface SearchOptions {
  /** The user whose sessions are searched. Null is the anonymous user. */
  readonly userId: string | null;
  /** The only session that is searched. Default: all sessions of the user. */
  readonly sessionId?: string;
  /** The most messages to return. Default 10. */
  readonly limit?: number;
}
