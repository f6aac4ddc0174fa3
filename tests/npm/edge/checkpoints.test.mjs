// A few kills of workerd during streamed answers, for every run.
import { checkpointStory } from "./checkpoints.mjs";

checkpointStory(4);
