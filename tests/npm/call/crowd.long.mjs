// Many sessions over HTTP, the long version.
import { crowdStory } from "./crowd.mjs";

crowdStory({ users: 20, sessions: 100, calls: 20 });
