// Kills of workerd, the long version.
import { killStory } from "./kills.mjs";

killStory(100);
