import { describe, expect, test } from "bun:test";
import { prefixes } from "../../../test/support/bgp-plan.ts";
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import { PluginError } from "../../errors.ts";
import { bgpPeer } from "../../model/bgp-peer.ts";
import { node } from "../../model/node.ts";
import { nodeAgentConfiguration } from "../../model/node-agent-configuration.ts";
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
const TWO_NODES = { nodes: [nodeAt("node-1", "10.0.0.1/24"), nodeAt("node-2", "10.0.0.2/24")] };
const peer = put(
  bgpPeer.make({ name: "router" }, { peerIP: "10.0.0.9", asNumber: 65000, password: { file: "/etc/bgp-password" } }),
);

/** What the keeper is told, after these updates. */
async function follow(
  updates: readonly Partial<BgpUpdate["changes"]>[],
  { hasRoutes = true, files = {} as Record<string, string> } = {},
): Promise<WantedBgp | undefined> {
  const told: (() => WantedBgp)[] = [];
  const follower = new BgpFollower({
    node: "node-1",
    keeper: { update: (wanted) => void told.push(wanted), run: async () => {} },
    passwords: new Passwords({
      readFile: async (path) => files[path],
      readSecret: () => Promise.reject(new Error("there is no API")),
    }),
    wait: async () => {},
  });
  if (hasRoutes) follower.announce(prefixes("10.244.1.0/26"));
  async function* changes() {
    for (const each of updates) yield { changes: { ...NOTHING, ...each } };
  }
  await follower.run(changes(), AbortSignal.abort());
  return told.at(-1)?.();
}

function planOf(wanted: WantedBgp | undefined) {
  if (wanted === undefined || !("plan" in wanted)) throw new Error("no plan is wanted");
  return wanted.plan;
}

describe("BgpFollower", () => {
  test("plans the sessions of the mesh, and what the node announces", async () => {
    const plan = planOf(await follow([TWO_NODES]));

    expect(plan.sessions.map(({ name }) => name)).toEqual(["Mesh_10_0_0_2"]);
    expect(plan.announced).toEqual(prefixes("10.244.1.0/26"));
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
    const wanted = await follow([{ nodes: [nodeAt("node-1", "10.0.0.1/24")] }]);

    expect(wanted).toEqual({ reason: expect.stringContaining("no other node"), problems: [] });
  });

  test("needs no BIRD if BGP is disabled for this node", async () => {
    const disabled = put(nodeAgentConfiguration.make({ name: "node.node-1" }, { bgp: "Disabled" }));

    expect(await follow([TWO_NODES, { configurations: [disabled] }])).toMatchObject({
      reason: expect.stringContaining("Disabled"),
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
