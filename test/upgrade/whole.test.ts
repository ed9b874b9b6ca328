/** Whole upgrades on today's orchestrator, of every way of installation (whole-upgrade.ts). */
import { setDefaultTimeout } from "bun:test";
import { proofSize } from "../support/proof-size.ts";
import {
  chartLayout,
  etcdLayout,
  type Layout,
  manifestLayout,
  operatorLayout,
  uneditedLayout,
} from "./whole-layouts.ts";
import { describeWholeUpgrade } from "./whole-upgrade.ts";

setDefaultTimeout(600_000);

const VERSIONS = ["v3.15.5", "v3.22.5", "v3.26.4", "v3.28.2"] as const;
const LAYOUTS = proofSize<readonly Layout[]>({
  everyDay: [manifestLayout("v3.26.4", "own")],
  soak: [
    ...VERSIONS.flatMap((version) => [
      ...(["own", "other", "fabric"] as const).map((network) => manifestLayout(version, network)),
      etcdLayout(version),
      operatorLayout(version),
      chartLayout(version),
    ]),
    ...(["v3.24.0", "v3.25.2", "v3.27.5"] as const).map((release) => uneditedLayout(release, "own")),
    uneditedLayout("v3.25.2", "other"),
  ],
});

for (const layout of LAYOUTS) describeWholeUpgrade(layout);
