// Kills of workerd, at length.
import { killStory } from "./kills.mjs";

killStory(100);
