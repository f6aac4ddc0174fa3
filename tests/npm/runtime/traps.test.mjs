// A hundred traps; traps.long.mjs has a thousand.
import { traps } from "./traps.mjs";

traps(100);
