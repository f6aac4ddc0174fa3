// The crowd over HTTP, small enough for every run.
import { crowdStory } from "./crowd.mjs";

crowdStory({ users: 6, sessions: 24, calls: 10 });
