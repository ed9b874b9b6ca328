import { describe, expect, test } from "bun:test";
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import { API_VERSION } from "../../identity.ts";
import { formatAddress } from "../../ip/address.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { FloatingKeeper, type FloatingMeans } from "./floating-keeper.ts";
import { followFloating } from "./follow-floating.ts";

const put = (
  key: string,
  internalIP: string,
  externalIP?: string,
  node = "node-1",
): RecordChange<WorkloadEndpoint> => ({
  kind: "put",
  key,
  previous: undefined,
  value: {
    apiVersion: API_VERSION,
    kind: "WorkloadEndpoint",
    metadata: { name: key, namespace: "shop" },
    spec: { node, ...(externalIP === undefined ? {} : { ipNATs: [{ internalIP, externalIP }] }) },
  },
});
const gone = (key: string): RecordChange<WorkloadEndpoint> => ({ kind: "delete", key, previous: undefined });

const ON = { isEnabled: true };

function keeperOf(refuses = () => false) {
  const written: string[][] = [];
  const reports: string[] = [];
  const means: FloatingMeans = {
    node: "node-1",
    write: async (addresses) => {
      if (refuses()) throw new Error("no NAT in this kernel");
      written.push(addresses.map(({ external, internal }) => `${formatAddress(external)} ${formatAddress(internal)}`));
    },
    report: (message) => void reports.push(message),
  };
  return { keeper: new FloatingKeeper(means), means, written, reports };
}

describe("FloatingKeeper", () => {
  test("writes at the start, even if there are none: a former agent may have left some", async () => {
    const { keeper, written } = keeperOf();
    await keeper.update([], ON);
    expect(written).toEqual([[]]);
  });

  test("writes only if floating IPs of this node have changed", async () => {
    const { keeper, written } = keeperOf();
    await keeper.update(
      [put("a", "10.0.0.5", "192.0.2.80"), put("b", "10.0.0.6"), put("c", "10.0.0.7", "192.0.2.81", "x")],
      ON,
    );
    await keeper.update([put("a", "10.0.0.5", "192.0.2.80"), put("b", "10.0.0.8"), gone("c")], ON);
    await keeper.update([put("b", "10.0.0.6", "192.0.2.82"), put("a", "10.0.0.5")], ON);
    await keeper.update([gone("b")], ON);
    expect(written).toEqual([["192.0.2.80 10.0.0.5"], ["192.0.2.82 10.0.0.6"], []]);
  });

  test("leads no address to a pod while it is not enabled", async () => {
    const { keeper, written } = keeperOf();
    await keeper.update([put("a", "10.0.0.5", "192.0.2.80")], { isEnabled: false });
    await keeper.update([], ON);
    await keeper.update([], { isEnabled: false });
    expect(written).toEqual([[], ["192.0.2.80 10.0.0.5"], []]);
  });

  test("reports a conflict once, and again after it was gone", async () => {
    const { keeper, reports } = keeperOf();
    const both = [put("a", "10.0.0.5", "192.0.2.80"), put("b", "10.0.0.6", "192.0.2.80")];
    await keeper.update(both, ON);
    await keeper.update([put("c", "10.0.0.7", "192.0.2.83")], ON);
    expect(reports).toHaveLength(1);
    await keeper.update([gone("a")], ON);
    await keeper.update(both, ON);
    expect(reports).toHaveLength(2);
  });

  test("reports a kernel that refuses once, and tries again at the next change", async () => {
    let refuses = true;
    const { keeper, reports, written } = keeperOf(() => refuses);
    await keeper.update([put("a", "10.0.0.5", "192.0.2.80")], ON);
    await keeper.update([put("b", "10.0.0.6")], ON);
    await keeper.update([put("c", "10.0.0.7", "192.0.2.83")], ON);
    refuses = false;
    await keeper.update([gone("c")], ON);
    expect([reports, written]).toEqual([[expect.stringContaining("no NAT in this kernel")], [["192.0.2.80 10.0.0.5"]]]);
  });
});

describe("followFloating()", () => {
  test("follows the updates", async () => {
    const { means, written } = keeperOf();
    async function* updates() {
      yield { changes: { configurations: [], endpoints: [put("a", "10.0.0.5", "192.0.2.80")] } };
      yield { changes: { configurations: [], endpoints: [gone("a")] } };
    }
    await followFloating(updates(), means);
    expect(written).toEqual([["192.0.2.80 10.0.0.5"], []]);
  });
});
