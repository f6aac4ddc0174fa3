// Redis masters that are killed while calls run: the long version.
import { failoverStories } from "./redis-failover.mjs";

failoverStories({ calls: 1_000 });
