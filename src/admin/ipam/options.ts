import type { Option } from "../main/option.ts";

/** Of an address that is kept for a pod. */
export const USUAL_KEEP_FOR = "24h";

export const MAP_OPTION: Option = {
  name: "map",
  value: "WHAT",
  oneOf: ["usage", "node"],
  valueIfBare: "usage",
  otherValueHint: "; --pool NAME selects a pool",
  summary: "Draw the blocks of each pool as a map: how full they are (usage, the default), or who has them (node)",
};

export const DEFAULT_GRACE = "15m";
