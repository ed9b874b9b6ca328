import { describe, expect, test } from "bun:test";
import { runInside, WELL } from "../../../test/support/admin-context.ts";
import { poolChange, seed } from "../../../test/support/ipam.ts";
import { storeAround } from "../../../test/support/wrapped-store.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION } from "../../identity.ts";
import { formatAddress } from "../../ip/address.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import { formatRange } from "../../ip/range.ts";
import { REPORTED_ANNOTATION } from "../../model/claimed-endpoint.ts";
import { NETWORK_ANNOTATION } from "../../model/endpoint-labels.ts";
import { hostInterfaceName } from "../../model/host-interface-name.ts";
import { resourceKey } from "../../model/keys.ts";
import type { WantedTables } from "../../upkeep/restore-tables.ts";

const RUNNING = { agent: "running", hasPolicyTable: false } as const;

const restored = async (
  words: string,
  {
    written = [] as readonly string[],
    more = "",
    marks = [] as readonly string[],
    features = undefined as object | undefined,
  } = {},
) => {
  const store = openMemory();
  await seed(store, poolChange("blue", "10.0.0.0/24", { natOutgoing: true }), poolChange("red", "10.1.0.0/24"));
  if (more !== "") await seed(store, { kind: "create", key: resourceKey("ippools", { name: "bad" }), value: more });
  await seed(store, ...ENDPOINTS);
  const given: string[] = [];
  let floating: readonly string[] | undefined;
  let excluded: readonly string[] | undefined;
  const restoreTables = async ({ pools, sources, ...more }: WantedTables) => {
    excluded = more.clusterSources?.[4].map(formatRange);
    floating = more.floating.map(({ external, internal }) => `${formatAddress(external)} ${formatAddress(internal)}`);
    given.push(...pools.map(({ cidr, natOutgoing }) => `${formatPrefix(cidr)} ${natOutgoing}`));
    given.push(...sources.map(({ mark, prefixes }) => `${mark} ${prefixes.map(formatPrefix).join()}`));
    return written;
  };
  const files = features !== undefined ? networkWith({ feature_control: features }) : {};
  return {
    ...(await runInside(words.split(" "), {
      store,
      restoreTables,
      files,
      hostLinks: { marksWithSources: new Set(marks) },
    })),
    given: given.sort(),
    floating,
    excluded,
  };
};
/** Their addresses are not from IPAM, so only the list of all endpoints contains them. */
const ENDPOINTS = [
  ["open", "node-1", ["198.51.100.0/24", "2001:db8::/64"], [{ externalIP: "192.0.2.80", internalIP: "10.0.0.5" }]],
  ["other", "node-1", ["203.0.113.0/24"], [{ externalIP: "192.0.2.80", internalIP: "10.0.0.6" }]],
  ["remote", "node-2", [], [{ externalIP: "192.0.2.82", internalIP: "10.0.0.7" }]],
].map(([pod, node, allowSpoofedSourcePrefixes, ipNATs]) => ({
  kind: "create" as const,
  key: resourceKey("workloadendpoints", {
    namespace: "shop",
    name: `${node}-k8s-${pod}-eth0`.replace("node-", "node--"),
  }),
  value: JSON.stringify({
    apiVersion: API_VERSION,
    kind: "WorkloadEndpoint",
    metadata: {
      name: "any",
      namespace: "shop",
      annotations: { [NETWORK_ANNOTATION]: "net" },
    },
    spec: { node, containerID: `id-of-${pod}`, endpoint: "eth0", allowSpoofedSourcePrefixes, ipNATs },
  }),
}));
const networkWith = (more: object) => ({
  "/etc/cni/net.d/10.conflist": JSON.stringify({
    name: "net",
    cniVersion: "1.0.0",
    plugins: [{ type: "vendor", datastore_type: "embedded", ipam: { type: "vendor-ipam" }, ...more }],
  }),
});

/** An address of a pod of the orchestrator's API, adopted from a former release. */
async function floatingOfPod({
  reported,
  claimed = [{ externalIP: "192.0.2.80", internalIP: "10.0.0.5" }],
  marks = ["net/c1/eth0"],
  features = { floating_ips: true },
}: {
  readonly reported: readonly string[];
  readonly claimed?: readonly object[];
  readonly marks?: readonly string[];
  readonly features?: object;
}) {
  const store = openMemory();
  const [namespace, pod] = ["shop", "open"];
  const name = "node--1-k8s-open-eth0";
  const annotations = { [REPORTED_ANNOTATION]: JSON.stringify({ podIPs: reported, unreadable: [] }) };
  const spec = { node: "node-1", orchestrator: "k8s", pod, endpoint: "eth0", ipNetworks: ["10.0.0.5/32"] };
  const endpoint = { metadata: { name, namespace, annotations }, spec: { ...spec, ipNATs: claimed } };
  await seed(store, {
    kind: "create",
    key: resourceKey("workloadendpoints", { namespace, name }),
    value: JSON.stringify({ apiVersion: API_VERSION, kind: "WorkloadEndpoint", ...endpoint }),
  });
  const record = {
    ...{ mark: "net/c1/eth0", pod: undefined, addresses: [], sourcePrefixes: [] },
    floating: [{ externalIP: "192.0.2.80", internalIP: "10.0.0.5" }],
  };
  let floating: readonly string[] | undefined;
  const { stderr, code } = await runInside("node restore --name node-1 --datastore-type etcdv3".split(" "), {
    store: { ...storeAround(store, {}), isOrchestratorApi: true },
    files: networkWith({ feature_control: features }),
    hostLinks: {
      marks: new Set(marks),
      attachments: new Map([
        [hostInterfaceName({ containerId: "", ifname: "eth0", pod: { namespace, name: pod } }), record],
      ]),
    },
    restoreTables: async (wanted) => {
      floating = wanted.floating?.map((each) => `${formatAddress(each.external)} ${formatAddress(each.internal)}`);
      return [];
    },
  });
  expect([code, stderr]).toEqual([0, ""]);
  return floating;
}

describe("node restore", () => {
  test("writes nothing while an agent runs, which might have read later pools", async () => {
    const restoreTables = () => Promise.reject(new Error("nothing is to be written"));
    const { code, stdout } = await runInside(["node", "restore"], { agentFacts: RUNNING, restoreTables });

    expect([code, stdout]).toEqual([0, expect.stringContaining("they are in place")]);
    const tables = { nat: "changed", floating: "missing", guard: "missing", hostPorts: "missing" } as const;
    const left = await runInside(["node", "restore"], { agentFacts: RUNNING, hostFacts: { ...WELL, tables } });
    expect([left.code, left.stderr]).toEqual([1, expect.stringContaining("was changed by another program")]);
  });

  test("writes the tables for all pools, and says which were written", async () => {
    const { code, stdout, given } = await restored("node restore", { written: ["inet a", "inet b"] });

    expect([code, given]).toEqual([0, ["10.0.0.0/24 true", "10.1.0.0/24 false"]]);
    expect(stdout).toContain("inet a, inet b");
    expect((await restored("node restore")).stdout).toContain("up to date");
    expect((await restored("node restore -o json")).stdout).toBe('{"written":[]}\n');
  });

  test("restores the sources of the links that have some, as their endpoints record them", async () => {
    const { code, given } = await restored("node restore --name node-1 --datastore-type etcdv3", {
      marks: ["net/id-of-open/eth0", "net/x/eth0"],
      features: { allowed_source_prefixes: true },
    });

    expect([code, given.slice(2)]).toEqual([0, ["net/id-of-open/eth0 198.51.100.0/24,2001:db8::/64"]]);
  });

  test("withdraws them while the switch of the network config is off, and leaves them alone without a config", async () => {
    const marks = ["net/id-of-open/eth0"];
    const off = await restored("node restore --name node-1 --datastore-type etcdv3", { marks, features: {} });
    expect(off.given.slice(2)).toEqual(["net/id-of-open/eth0 "]);
    expect((await restored("node restore --name node-1", { marks })).given.slice(2)).toEqual([]);
  });

  test("excludes the addresses of pools from further sources unless the config lists them", async () => {
    const features = { allowed_source_prefixes: true, cluster_source_prefixes: ["10.1.0.0/25"] };
    const words = "node restore --name node-1 --datastore-type etcdv3";
    expect((await restored(words, { features })).excluded).toEqual(["10.0.0.0-10.0.0.255", "10.1.0.128-10.1.0.255"]);
    expect((await restored(words, { features: { floating_ips: true } })).excluded).toBeUndefined();
  });

  test("has the floating IPs of this node, and reports one that two pods claim", async () => {
    const { floating, stderr } = await restored("node restore --name node-1");

    expect(floating).toEqual(["192.0.2.80 10.0.0.5"]);
    expect(stderr).toMatch(/warning: Floating IP "192\.0\.2\.80" of endpoint ".*other.*" has no effect/);
  });

  test.each([
    ["the kubelet reports its internal address", { reported: ["10.0.0.5/32"] }, ["192.0.2.80 10.0.0.5"]],
    ["nothing proves its internal address", { reported: [] }, []],
    ["the pod has another address now", { reported: ["10.0.0.6/32"] }, []],
    ["its pod does not claim it", { reported: ["10.0.0.5/32"], claimed: [] }, []],
    ["its link is gone", { reported: ["10.0.0.5/32"], marks: [] }, []],
    ["the switch is off", { reported: ["10.0.0.5/32"], features: {} }, []],
  ])("if endpoints are pods, a floating IP that the host recorded: %s", async (_, given, expected) => {
    expect(await floatingOfPod(given)).toEqual(expected);
  });

  test("writes nothing if a pool is unreadable: its pods would lose their NAT", async () => {
    const { code, given, stderr } = await restored("node restore", { more: "{" });

    expect([code, given]).toEqual([1, []]);
    expect(stderr).toContain("bad");
  });
});
