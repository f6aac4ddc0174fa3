import { fourTabs } from "./four-tabs.mjs";

fourTabs(60, ["webkit"]);
