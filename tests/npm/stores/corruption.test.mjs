// Damaged sessions in real stores, a share of the seeds of corruption.long.mjs.
import { corruptionTests } from "./corruption-stores.mjs";

await corruptionTests(Number(process.env.SEEDS ?? 25));
