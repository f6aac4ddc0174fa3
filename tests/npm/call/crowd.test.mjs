// Many sessions over HTTP, the short version.
import { crowdStory } from "./crowd.mjs";

crowdStory({ users: 6, sessions: 24, calls: 10 });
