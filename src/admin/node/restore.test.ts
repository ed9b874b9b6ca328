import { describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { poolChange, seed } from "../../../test/support/ipam.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION } from "../../identity.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import { NETWORK_ANNOTATION } from "../../model/endpoint-labels.ts";
import { resourceKey } from "../../model/keys.ts";
import type { WantedTables } from "../command.ts";

const restored = async (
  words: string,
  { written = [] as readonly string[], more = "", marks = [] as readonly string[] } = {},
) => {
  const store = openMemory();
  await seed(store, poolChange("blue", "10.0.0.0/24", { natOutgoing: true }), poolChange("red", "10.1.0.0/24"));
  if (more !== "") await seed(store, { kind: "create", key: resourceKey("ippools", { name: "bad" }), value: more });
  await seed(store, ...ENDPOINTS);
  const given: string[] = [];
  const restoreTables = async ({ pools, sources }: WantedTables) => {
    given.push(...pools.map(({ cidr, natOutgoing }) => `${formatPrefix(cidr)} ${natOutgoing}`));
    given.push(...sources.map(({ mark, prefixes }) => `${mark} ${prefixes.map(formatPrefix).join()}`));
    return written;
  };
  const files = words.includes("--for-agent") ? NETWORK : {};
  return {
    ...(await runInside(words.split(" "), {
      store,
      restoreTables,
      files,
      hostLinks: { marksWithSources: new Set(marks) },
    })),
    given: given.sort(),
  };
};
/** Their addresses are not from IPAM, so only the list of all endpoints contains them. */
const ENDPOINTS = [
  ["open", "node-1", ["198.51.100.0/24", "2001:db8::/64"]],
  ["other", "node-1", ["203.0.113.0/24"]],
].map(([pod, node, allowSpoofedSourcePrefixes]) => ({
  kind: "create" as const,
  key: resourceKey("workloadendpoints", {
    namespace: "shop",
    name: `${node}-k8s-${pod}-eth0`.replace("node-1", "node--1"),
  }),
  value: JSON.stringify({
    apiVersion: API_VERSION,
    kind: "WorkloadEndpoint",
    metadata: {
      name: "any",
      namespace: "shop",
      annotations: { [NETWORK_ANNOTATION]: "net" },
    },
    spec: { node, containerID: `id-of-${pod}`, endpoint: "eth0", allowSpoofedSourcePrefixes },
  }),
}));
const NETWORK = {
  "/etc/cni/net.d/10.conflist": JSON.stringify({
    name: "net",
    cniVersion: "1.0.0",
    plugins: [{ type: "vendor", datastore_type: "embedded", ipam: { type: "vendor-ipam" } }],
  }),
};

describe("node restore", () => {
  test("writes the tables for all pools, and says which were written", async () => {
    const { code, stdout, given } = await restored("node restore", { written: ["inet a", "inet b"] });

    expect([code, given]).toEqual([0, ["10.0.0.0/24 true", "10.1.0.0/24 false"]]);
    expect(stdout).toContain("inet a, inet b");
    expect((await restored("node restore")).stdout).toContain("up to date");
    expect((await restored("node restore -o json")).stdout).toBe('{"written":[]}\n');
  });

  test("restores the sources of the links that have some, as their endpoints record them", async () => {
    const { code, given } = await restored("node restore --name node-1", {
      marks: ["net/id-of-open/eth0", "net/x/eth0"],
    });

    expect([code, given.slice(2)]).toEqual([0, ["net/id-of-open/eth0 198.51.100.0/24,2001:db8::/64"]]);
  });

  test("writes nothing if a pool is unreadable: its pods would lose their NAT", async () => {
    const { code, given, stderr } = await restored("node restore", { more: "{" });

    expect([code, given]).toEqual([1, []]);
    expect(stderr).toContain("bad");
  });
});
