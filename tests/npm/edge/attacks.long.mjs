// A client attacks a worker for ten minutes.
import { attackStory } from "./attacks.mjs";

attackStory(600_000, 1_000);
