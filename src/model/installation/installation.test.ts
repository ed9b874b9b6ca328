import { describe, expect, test } from "bun:test";
import { apiVersionOf, identity, OPERATOR_API } from "../../identity.ts";
import { formatProblem } from "../problem.ts";
import { installation } from "./installation.ts";
import { NETWORK_FIELD } from "./names.ts";

function problemsOf(spec: unknown, name = "default"): readonly string[] {
  const decoded = installation.decode({
    apiVersion: apiVersionOf(OPERATOR_API),
    kind: "Installation",
    metadata: { name },
    spec,
  });
  return decoded.ok ? [] : decoded.problems.map(formatProblem);
}

describe("installation.decode()", () => {
  test("accepts an Installation without a spec, and the overlay", () => {
    expect(problemsOf(undefined)).toEqual([]);
    expect(problemsOf({}, "overlay")).toEqual([]);
  });

  test("returns the network under the name that the program uses", () => {
    const decoded = installation.decode({
      apiVersion: apiVersionOf(OPERATOR_API),
      kind: "Installation",
      metadata: { name: "default" },
      spec: { [NETWORK_FIELD]: { mtu: 1400 } },
    });

    expect(decoded.ok && decoded.value.spec.network).toEqual({ mtu: 1400 });
  });

  test("refuses another name, and unknown fields with a suggestion", () => {
    expect(problemsOf({}, "mine")).toEqual([
      'metadata.name: "mine" is not used; use "default", or "overlay" for what overrides it',
    ]);
    expect(problemsOf({ [NETWORK_FIELD]: { ipPool: [] } })).toEqual([
      `spec.${NETWORK_FIELD}.ipPool: is not a known field; did you mean "ipPools"?`,
    ]);
    expect(problemsOf({ network: {} })[0]).toContain("spec.network: is not a known field");
  });

  test("refuses what nothing carries out, by name and with the reason", () => {
    expect(problemsOf({ typhaMetricsPort: 9093, [`${identity.product}NodeWindowsDaemonSet`]: {} })).toHaveLength(2);
  });
});
