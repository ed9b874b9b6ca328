/**
 * Whole upgrades (whole-upgrade.ts) on API servers of earlier releases of the orchestrator: v1.24, the oldest that can be built
 * of its published module and the last that has PodSecurityPolicy, and v1.30, the last that cannot read addresses in rules.
 */
import { setDefaultTimeout } from "bun:test";
import { proofSize } from "../support/proof-size.ts";
import { chartLayout, etcdLayout, manifestLayout, operatorLayout } from "./whole-layouts.ts";
import { describeWholeUpgrade } from "./whole-upgrade.ts";

setDefaultTimeout(600_000);

const LAYOUTS = [
  manifestLayout("v3.15.5", "own", "1.24"),
  etcdLayout("v3.15.5", "1.24"),
  operatorLayout("v3.22.5", "1.24"),
  chartLayout("v3.15.5", "1.24"),
  manifestLayout("v3.28.2", "own", "1.30"),
  chartLayout("v3.26.4", "1.30"),
];

for (const layout of LAYOUTS) {
  describeWholeUpgrade(layout, proofSize({ everyDay: "only in `make soak`", soak: undefined }));
}
