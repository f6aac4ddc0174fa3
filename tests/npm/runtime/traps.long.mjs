// A thousand traps.
import { traps } from "./traps.mjs";

traps(1_000);
