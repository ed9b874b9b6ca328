import { describe, expect, test } from "bun:test";
import { prefixes } from "../../../test/support/bgp-plan.ts";
import { prefix } from "../../../test/support/ip.ts";
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import { PluginError } from "../../errors.ts";
import type { BgpEnd } from "../../firewall/bgp-table.ts";
import { formatAddress } from "../../ip/address.ts";
import type { Prefix } from "../../ip/prefix.ts";
import { bgpConfiguration } from "../../model/bgp-configuration.ts";
import { bgpPeer } from "../../model/bgp-peer.ts";
import { type IPPool, ipPool } from "../../model/ip-pool.ts";
import { node } from "../../model/node.ts";
import { nodeAgentConfiguration } from "../../model/node-agent-configuration.ts";
import type { LocalServices } from "../../routing/bgp/facts.ts";
import { BgpFollower, type BgpUpdate } from "./bgp-follower.ts";
import type { WantedBgp } from "./bird-keeper.ts";
import { Passwords } from "./passwords.ts";

const NOTHING: BgpUpdate["changes"] = {
  ...{ nodes: [], pools: [], configurations: [], bgpConfigurations: [], bgpPeers: [], bgpFilters: [] },
};

const put = <Value extends { metadata: { name: string } }>(value: Value): RecordChange<Value> => ({
  ...{ kind: "put", key: value.metadata.name, value, previous: undefined },
});

const nodeAt = (name: string, ipv4Address: string) => put(node.make({ name }, { bgp: { ipv4Address } }));
const poolWith = (vxlanMode: IPPool["spec"]["vxlanMode"], name = "pods", cidr = "10.244.0.0/16") =>
  put(
    ipPool.make(
      { name },
      {
        ...{ cidr, vxlanMode, ipipMode: "Never", natOutgoing: false, nodeSelector: "all()", disabled: false },
        ...{ disableBGPExport: false, blockSize: 26, allowedUses: ["Workload", "Tunnel"] },
      },
    ),
  );
const POOLS = { pools: [poolWith("Never")] };
const TWO_NODES = { nodes: [nodeAt("node-1", "10.0.0.1/24"), nodeAt("node-2", "10.0.0.2/24")], ...POOLS };
const NODE_2 = { ipv4Address: "10.0.0.2/24" };
const secretPeer = put(
  bgpPeer.make(
    { name: "router" },
    { peerIP: "10.0.0.9", asNumber: 65000, password: { secretKeyRef: { name: "bgp-passwords", key: "tor" } } },
  ),
);
const peer = put(
  bgpPeer.make({ name: "router" }, { peerIP: "10.0.0.9", asNumber: 65000, password: { file: "/etc/bgp-password" } }),
);

interface FollowOptions {
  readonly hasRoutes?: boolean;
  readonly outsidePools?: ReadonlyMap<string, Prefix>;
  readonly files?: Readonly<Record<string, string>>;
  readonly readSecret?: () => Promise<string>;
  readonly wait?: (milliseconds: number) => Promise<void>;
  readonly signal?: AbortSignal;
  /** Everything that the keeper is told. */
  readonly told?: unknown[];
  /** The peers whose sessions are guarded, as often as it is told. */
  readonly guarded?: string[];
  readonly isBirdInstalled?: boolean;
  /** When the keeper computes what is wanted. */
  readonly evaluate?: "each" | "last";
  readonly services?: LocalServices;
  readonly servicesProblem?: string;
  /** What the configuration on the host announces. */
  readonly announcedBefore?: readonly Prefix[];
  /** How many networks of Services are followed, as often as it is told. */
  readonly followed?: number[];
}

/** What the keeper is told, after these updates. */
async function follow(
  updates: readonly Partial<BgpUpdate["changes"]>[],
  {
    hasRoutes = true,
    outsidePools = new Map(),
    files = {},
    readSecret = () => Promise.reject(new PluginError("config-invalid", "there is no API")),
    wait = async () => {},
    signal = AbortSignal.abort(),
    told = [],
    guarded = [],
    isBirdInstalled = true,
    evaluate = "last",
    services = [],
    servicesProblem,
    announcedBefore = [],
    followed = [],
  }: FollowOptions = {},
): Promise<WantedBgp | undefined> {
  let last: (() => WantedBgp) | undefined;
  const follower = new BgpFollower({
    node: "node-1",
    keeper: {
      update(wanted) {
        told.push(wanted);
        last = wanted;
        if (evaluate === "each") wanted();
      },
      run: async () => {},
      known: async () => undefined,
    },
    passwords: new Passwords({
      readFile: async (path) => files[path],
      readSecret,
    }),
    guard: {
      guard: (ends) => void guarded.push(ends.map(describeEnd).join()),
      run: async () => {},
    },
    services: {
      services,
      problem: servicesProblem,
      follow: (networks) => void followed.push(networks.all.length),
      run: async () => {},
    },
    announcedBefore: () => announcedBefore,
    isBirdInstalled: () => isBirdInstalled,
    wait,
  });
  if (hasRoutes) follower.announce({ announced: byText("10.244.1.0/26"), outsidePools });
  async function* changes() {
    for (const each of updates) yield { changes: { ...NOTHING, ...each } };
  }
  await follower.run(changes(), signal);
  return last?.();
}

function byText(text: string): ReadonlyMap<string, Prefix> {
  return new Map([[text, prefix(text)]]);
}

function describeEnd({ source, address, port }: BgpEnd): string {
  return `${source && formatAddress(source)} to ${formatAddress(address)} ${port}`;
}

function planOf(wanted: WantedBgp | undefined) {
  if (wanted === undefined || !("plan" in wanted)) throw new Error("no plan is wanted");
  return wanted.plan;
}

describe("BgpFollower", () => {
  test("plans the sessions of the mesh, and what the node announces", async () => {
    const plan = planOf(await follow([TWO_NODES], { outsidePools: byText("10.9.0.0/26") }));

    expect(plan.sessions.map(({ name }) => name)).toEqual(["Mesh_10_0_0_2"]);
    expect(plan.announced).toEqual(prefixes("10.244.1.0/26"));
    expect(plan.accepted).toContainEqual(prefix("10.9.0.0/26"));
  });

  test("wants nothing before both the resources and the announced routes are known", async () => {
    expect(await follow([TWO_NODES], { hasRoutes: false })).toBeUndefined();
    expect(await follow([])).toBeUndefined();
  });

  test("forgets a node that was deleted, and keeps one that cannot be read any more", async () => {
    const third = nodeAt("node-3", "10.0.0.3/24");
    const gone = { kind: "delete", key: "node-2", previous: undefined } as const;
    const failure = new PluginError("decode-failure", "not JSON");
    const unreadable = { kind: "unreadable", key: "node-3", failure, previous: undefined } as const;
    const plan = planOf(await follow([TWO_NODES, { nodes: [third] }, { nodes: [gone, unreadable] }]));

    expect(plan.sessions.map(({ name }) => name)).toEqual(["Mesh_10_0_0_3"]);
  });

  test("a single node needs no BIRD", async () => {
    const wanted = await follow([{ nodes: [nodeAt("node-1", "10.0.0.1/24")], ...POOLS }]);

    expect(wanted).toEqual({ reason: expect.stringContaining("no other node"), problems: [] });
  });

  test("needs no BIRD while all pools have a tunnel, and needs it from the change of a pool on", async () => {
    const tunnelled = { ...TWO_NODES, pools: [poolWith("Always")] };

    expect(await follow([tunnelled])).toEqual({
      reason: "no pool without a tunnel is exported by BGP, and no BGPPeer selects this node",
      problems: [],
    });
    expect(planOf(await follow([tunnelled, POOLS])).sessions.map(({ name }) => name)).toEqual(["Mesh_10_0_0_2"]);
  });

  test("does nothing for a change of a Node that BGP does not depend on", async () => {
    const told: unknown[] = [];
    const status = (key: string) => put(node.make({ name: "node-2", annotations: { key } }, { bgp: NODE_2 }));
    await follow([TWO_NODES, { nodes: [status("a")] }, { nodes: [status("b")] }], { told });
    expect(told).toHaveLength(1);

    const labelled = put(node.make({ name: "node-2", labels: { rack: "1" } }, { bgp: NODE_2 }));
    await follow([{ ...TWO_NODES, nodes: [...TWO_NODES.nodes, labelled] }, TWO_NODES], { told });
    expect(told).toHaveLength(3);
  });

  test("leaves BIRD alone while a password cannot be read after a start", async () => {
    const options = {
      readSecret: () => Promise.reject(new PluginError("api-unavailable", "the API does not respond")),
    };

    await expect(follow([{ ...TWO_NODES, bgpPeers: [secretPeer] }], options)).rejects.toThrow("does not respond");
  });

  test("keeps the sessions while the password of another one cannot be read, and changes the rest", async () => {
    const options = { readSecret: () => Promise.reject(new Error("timeout")), evaluate: "each" as const };
    const third = nodeAt("node-3", "10.0.0.3/24");
    const other = poolWith("Never", "other", "10.7.0.0/16");
    const later = { nodes: [third], pools: [other], bgpPeers: [secretPeer] };
    const plan = planOf(await follow([TWO_NODES, later], options));

    expect(plan.sessions.map(({ name }) => name)).toEqual(["Mesh_10_0_0_2"]);
    expect(plan.exported).toEqual(prefixes("10.7.0.0/16", "10.244.0.0/16"));
    expect(plan.problems).toEqual([expect.stringContaining("timeout")]);
  });

  test("goes on without a session whose Secret or key does not exist", async () => {
    const options = { readSecret: () => Promise.reject(new PluginError("resource-missing", "no key")) };
    const plan = planOf(await follow([{ ...TWO_NODES, bgpPeers: [secretPeer] }], options));

    expect(plan.sessions.map(({ name }) => name)).toEqual(["Mesh_10_0_0_2"]);
  });

  test("tries a password again soon", async () => {
    const stop = new AbortController();
    const waits: number[] = [];
    let reads = 0;
    const readSecret = async () => {
      if (++reads < 3) throw new Error("timeout");
      return "secret word";
    };
    const wait = async (milliseconds: number) => {
      await Bun.sleep(1);
      if (waits.push(milliseconds) === 5) stop.abort();
    };
    const plan = planOf(
      await follow([{ ...TWO_NODES, bgpPeers: [secretPeer] }], { readSecret, wait, signal: stop.signal }),
    );

    expect(plan.sessions.map(({ password }) => password)).toEqual(["secret word", undefined]);
    expect(Math.max(...waits)).toBeLessThanOrEqual(5_000);
    expect(reads).toBe(3);
  });

  test("needs no BIRD if BGP is disabled for this node", async () => {
    const disabled = put(nodeAgentConfiguration.make({ name: "node.node-1" }, { bgp: "Disabled" }));

    const guarded: string[] = [];
    const wanted = await follow([TWO_NODES, { configurations: [disabled] }], { guarded, evaluate: "each" });

    expect(wanted).toMatchObject({ reason: expect.stringContaining("Disabled") });
    expect(new Set(guarded)).toEqual(new Set(["10.0.0.1 to 10.0.0.2 179", ""]));
    expect(guarded.at(-1)).toBe("");
  });

  test("guards nothing while BIRD is not installed", async () => {
    const guarded: string[] = [];
    await follow([TWO_NODES], { guarded, isBirdInstalled: false });

    expect(guarded).toEqual([""]);
  });

  test("guards a session from any address if it has no source, unless BIRD listens on the node's address only", async () => {
    const bgpPeers = [put(bgpPeer.make({ name: "r" }, { peerIP: "10.0.0.9", asNumber: 65000, sourceAddress: "None" }))];
    const bgpConfigurations = [put(bgpConfiguration.make({ name: "default" }, { bindMode: "NodeIP" }))];
    const guarded: string[] = [];
    await follow([{ ...TWO_NODES, bgpPeers }], { guarded });
    await follow([{ ...TWO_NODES, bgpPeers, bgpConfigurations }], { guarded });

    const mesh = "10.0.0.1 to 10.0.0.2 179";
    expect(guarded).toEqual([`undefined to 10.0.0.9 179,${mesh}`, `10.0.0.1 to 10.0.0.9 179,${mesh}`]);
  });

  test("needs no BIRD if routing is disabled", async () => {
    const disabled = put(nodeAgentConfiguration.make({ name: "default" }, { routing: "Disabled" }));

    expect(await follow([TWO_NODES, { configurations: [disabled] }])).toMatchObject({
      reason: expect.stringContaining('"routing" is "Disabled"'),
    });
  });

  test("reads the password of a peer from its file, without the line break at its end", async () => {
    const files = { "/etc/bgp-password": "secret word\n" };
    const plan = planOf(await follow([TWO_NODES, { bgpPeers: [peer] }], { files }));

    expect(plan.sessions.map(({ password }) => password)).toEqual(["secret word", undefined]);
  });

  test("leaves out a session whose password does not exist, and says so", async () => {
    const plan = planOf(await follow([TWO_NODES, { bgpPeers: [peer] }]));

    expect(plan.sessions.map(({ name }) => name)).toEqual(["Mesh_10_0_0_2"]);
    expect(plan.problems).toEqual([expect.stringContaining('file "/etc/bgp-password" does not exist')]);
  });
});

describe("Passwords", () => {
  test("notices a password that has changed, and keeps one that can no longer be read", async () => {
    const files: Record<string, string> = { "/a": "first", "/b": "other" };
    const passwords = new Passwords({
      readFile: async (path) => files[path],
      readSecret: async (name, key) => `${name} ${key}`,
    });
    const secretKeyRef = { name: "bgp-passwords", key: "tor" };
    await passwords.require([{ file: "/a" }, { file: "/b" }, { secretKeyRef }]);
    expect(await passwords.refresh()).toBe(false);
    files["/a"] = "second";
    delete files["/b"];
    expect(await passwords.refresh()).toBe(true);

    const texts = Object.fromEntries(passwords.all);
    expect(texts).toEqual({
      'file "/a"': { kind: "read", text: "second" },
      'file "/b"': { kind: "read", text: "other" },
      'key "tor" of Secret "bgp-passwords"': { kind: "read", text: "bgp-passwords tor" },
    });
    await passwords.require([{ file: "/a" }]);
    expect(passwords.all.size).toBe(1);
  });
});

describe("BgpFollower", () => {
  const networks = put(
    bgpConfiguration.make(
      { name: "default" },
      { serviceExternalIPs: [{ cidr: "192.0.2.0/24" }, { cidr: "198.51.100.7/32" }, { cidr: "198.51.100.8/32" }] },
    ),
  );

  test("Services are followed for the networks of the configuration, not without BGP", async () => {
    const off = put(nodeAgentConfiguration.make({ name: "default" }, { bgp: "Disabled" }));
    const followed: number[] = [];
    await follow([TWO_NODES, { bgpConfigurations: [networks] }, { configurations: [off] }], { followed });

    expect(followed).toEqual([0, 3, 0]);
    const service = {
      ...{ clusterIPs: [], loadBalancerIPs: [], families: new Set([4 as const]) },
      externalIPs: [prefix("192.0.2.7/32").network],
    };
    const plan = planOf(await follow([{ ...TWO_NODES, bgpConfigurations: [networks] }], { services: [service] }));
    expect(plan.announced).toEqual(
      prefixes("10.244.1.0/26", "192.0.2.0/24", "192.0.2.7/32", "198.51.100.7/32", "198.51.100.8/32"),
    );
  });

  test("while Services are unknown, single addresses of them stay as the agent before has announced them, and the rest goes on", async () => {
    const announcedBefore = prefixes(
      "10.244.9.0/26",
      "192.0.2.0/24",
      "192.0.2.7/32",
      "198.51.100.7/32",
      "203.0.113.7/32",
    );
    const options = { services: "unknown", announcedBefore, servicesProblem: "no API", evaluate: "each" } as const;
    const plan = planOf(
      await follow(
        [{ ...TWO_NODES, bgpConfigurations: [networks] }, { nodes: [nodeAt("node-3", "10.0.0.3/24")] }],
        options,
      ),
    );

    expect(plan.announced).toEqual(prefixes("10.244.1.0/26", "192.0.2.0/24", "192.0.2.7/32", "198.51.100.7/32"));
    expect([plan.sessions.length, plan.problems]).toEqual([2, ["no API"]]);
  });
});
