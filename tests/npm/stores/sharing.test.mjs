// Processes that share a session and are killed, over every store that they can share: the short version.
import { sharingStories } from "./sharing.mjs";

sharingStories({ calls: 40, writerKills: 5, serverKills: 2, workerKills: 2 });
