import { fourTabs } from "./four-tabs.mjs";

fourTabs(2);
