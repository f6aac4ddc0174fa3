// A thousand damaged sessions in each real store.
import { corruptionTests } from "./corruption-stores.mjs";

await corruptionTests(1_000);
