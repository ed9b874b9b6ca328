import { describe, expect, test } from "bun:test";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import type { UnplacedEndpoint } from "../../policy/compile/unnamed-interfaces.ts";
import { describeUnplaced, reportUnplaced } from "./unplaced-report.ts";

const POD: UnplacedEndpoint = {
  endpoint: workloadEndpoint.make({ name: "n-k8s-web-eth0", namespace: "shop" }, { pod: "web" }),
  addresses: ["10.0.0.5"],
  link: "cni0",
};

describe("describeUnplaced()", () => {
  test("names the pod, the interface and the setting", () => {
    const text = describeUnplaced(POD, ["vend", "veth"]);
    for (const part of ["shop/web", "10.0.0.5", '"cni0"', '"vend" or "veth"', "interfacePrefix"]) {
      expect(text).toContain(part);
    }
  });

  test("says that there is no route", () => {
    expect(describeUnplaced({ ...POD, link: undefined }, ["vend"])).toContain("no route");
  });
});

describe("reportUnplaced()", () => {
  test("reports what lasts, once", async () => {
    const reports: string[] = [];
    const stop = new AbortController();
    let looks = 0;
    const passing = { ...POD, addresses: ["10.0.0.6"] };
    await reportUnplaced({
      unplaced: () => (looks === 1 ? [POD, passing] : [POD]),
      prefixes: () => ["vend"],
      report: (message) => void reports.push(message),
      wait: async () => {
        if (++looks === 5) stop.abort();
      },
      signal: stop.signal,
    });
    expect(reports).toEqual([describeUnplaced(POD, ["vend"])]);
  });
});
