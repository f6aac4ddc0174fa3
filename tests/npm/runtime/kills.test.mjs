// A few kills of workerd, for every run.
import { killStory } from "./kills.mjs";

killStory(6);
