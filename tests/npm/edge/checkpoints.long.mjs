// Many kills of workerd during streamed answers.
import { checkpointStory } from "./checkpoints.mjs";

checkpointStory(20);
