// Processes that share a session and are killed, over every store that they can share: the long version.
import { sharingStories } from "./sharing.mjs";

sharingStories({ calls: 200, writerKills: 20, serverKills: 8, workerKills: 5 });
