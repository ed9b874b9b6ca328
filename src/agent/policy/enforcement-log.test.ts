import { describe, expect, test } from "bun:test";
import { enforcementLog } from "./enforcement-log.ts";

describe("enforcementLog()", () => {
  test("logs when policy begins and ceases to be enforced, not every change of a policy", () => {
    const logged: string[] = [];
    const note = enforcementLog((message) => logged.push(message));

    note({ isEnforced: false, policies: 0, workloads: 1 });
    note({ isEnforced: true, policies: 1, workloads: 2 });
    note({ isEnforced: true, policies: 5, workloads: 2 });
    note({ isEnforced: false, policies: 0, workloads: 2 });
    note({ isEnforced: false, isKept: true, policies: 0, workloads: 0 });

    expect(logged).toEqual([
      "Network policy: there is none, and no host endpoint of this node; all packets of workloads pass",
      "Network policy: enforced (policies: 1, workloads of this node: 2)",
      "Network policy: there is none, and no host endpoint of this node; all packets of workloads pass",
      "Network policy: there is none, but containers run here that the datastore does not know: rules of before stay",
    ]);
  });
});
