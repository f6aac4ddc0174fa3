// A client attacks a worker for a short time, for every run.
import { attackStory } from "./attacks.mjs";

// Other tests may use the same machine, so the limit only notices an answer that hangs.
attackStory(20_000, 10_000);
