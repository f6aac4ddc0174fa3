// The crowd over HTTP, at length.
import { crowdStory } from "./crowd.mjs";

crowdStory({ users: 20, sessions: 100, calls: 20 });
