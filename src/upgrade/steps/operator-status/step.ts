/** Rules 4 to 6: the operator itself says whether everything of the new release runs. It writes nothing. */

import type { Step } from "../../engine/step.ts";
import { operatorReports, untilNone } from "../../operator-install/operator-rollout.ts";

export const operatorStatusStep: Step = {
  name: "operator-status",
  title: "Wait until the operator reports the new release as available",
  rule: 6,
  why: "The operator knows all components, and the pools.",
  async plan({ facts, objects, release }) {
    if (facts.method.kind === "manifest") return undefined;
    if ((await operatorReports(objects, release.version)) === undefined) return undefined;
    return { step: this.name, changes: [], obstacles: [], notes: [], estimatedSeconds: 30, data: {} };
  },
  async remaining({ objects, release }) {
    const missing = await operatorReports(objects, release.version);
    return missing === undefined ? [] : [missing];
  },
  act: (site) => untilNone(site, "Waiting for the operator", () => operatorReports(site.objects, site.release.version)),
};
