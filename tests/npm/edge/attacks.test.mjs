// A client attacks a worker for a short time, for every run.
import { attackStory } from "./attacks.mjs";

attackStory(20_000);
