/**
 * Nodes whose clocks are hours apart, on real servers: the rest of a released address goes by the clock of the datastore,
 * whichever node releases the address and whichever asks for it.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Datastore } from "../../src/datastore/datastore.ts";
import { type EtcdOptions, openEtcd } from "../../src/datastore/etcd/etcd.ts";
import { type KubeMemory, openKube } from "../../src/datastore/kube/open.ts";
import type { PluginError } from "../../src/errors.ts";
import { type Allocator, openAllocator } from "../../src/ipam/allocator.ts";
import { openHintMemory } from "../../src/ipam/hint-file.ts";
import { blockChange, decodeBlock } from "../../src/ipam/records.ts";
import type { AssignRequest } from "../../src/ipam/request.ts";
import { blocksPrefix } from "../../src/model/keys.ts";
import { hasEtcd, startEtcd } from "../support/etcd.ts";
import { address, configurationChange, means, poolChange, request, seed, textsOf } from "../support/ipam.ts";
import { apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { installCrds } from "../support/kube-crds.ts";
import { rejectionOf } from "../support/thrown-by.ts";

const HOUR = 3_600_000;
const SET = 600;

interface Server {
  /** `agent`: as the node agent opens it, which stays. */
  open(as: "plugin" | "agent"): Promise<Datastore>;
  stop(): Promise<unknown>;
}

const SERVERS: readonly {
  readonly name: string;
  readonly problem: string | undefined;
  readonly start: () => Promise<Server>;
}[] = [
  {
    name: "etcd",
    problem: hasEtcd ? undefined : "no etcd",
    start: async () => {
      const cluster = await startEtcd();
      const asAgent: EtcdOptions = { cachesReads: true, upgradesToGrpc: true };
      const source = { kind: "endpoints", endpoints: cluster.endpoints } as const;
      return {
        open: (as) => openEtcd({ source }, as === "agent" ? asAgent : {}),
        stop: () => cluster.stop(),
      };
    },
  },
  {
    name: "the Kubernetes API",
    problem: apiServerProblem(),
    start: async () => {
      const server = await startApiServer();
      await installCrds(server);
      const asAgent: KubeMemory = { copiesRecords: true };
      const access = { kubeconfigs: [server.adminKubeconfig] };
      return {
        open: (as) => openKube(access, as === "agent" ? asAgent : {}),
        stop: () => server.stop(),
      };
    },
  },
];

describe.each(SERVERS)("on $name", ({ problem, start }) => {
  let server: Server;
  let opened: Datastore[] = [];

  beforeAll(async () => {
    if (problem === undefined) server = await start();
  }, 120_000);

  afterAll(async () => {
    for (const store of opened) await store.close();
    opened = [];
    await server?.stop();
  });

  /** An allocator on a host whose clock is ahead by this much. */
  async function host(as: "plugin" | "agent", ahead: number): Promise<{ store: Datastore; allocator: Allocator }> {
    const store = await server.open(as);
    opened.push(store);
    const now = () => new Date(Date.now() + ahead);
    return { store, allocator: openAllocator(store, means({ now, hints: openHintMemory() })) };
  }

  const pod = (handle: string, node: string, more: Partial<AssignRequest> = {}) =>
    request(handle, { node, network: "net", attributes: { pod: handle, namespace: handle }, ...more });
  const blockIn = async (store: Datastore) => {
    const [entry] = (await store.read([{ kind: "prefix", prefix: blocksPrefix(4) }])).answers[0] ?? [];
    if (entry === undefined) throw new Error("expected a block");
    return { entry, block: decodeBlock(entry) };
  };
  const testServer = problem === undefined ? test : test.skip;

  testServer.each([
    ["plugins", "plugin", -26 * HOUR, 5 * HOUR],
    ["agents", "agent", 5 * HOUR, 26 * HOUR],
    ["an agent and a plugin", "agent", 0, -3 * HOUR],
  ] as const)(
    "%s give no address before its rest has passed by the server's clock",
    async (_, as, behind, ahead) => {
      const [releasing, asking] = [await host(as, behind), await host("plugin", ahead)];
      const { store } = asking;
      const handles = ["a", "b", "c", "d", "e"].map((name) => `net.${name}`);
      await seed(store, poolChange("blue", "10.0.0.0/30", { blockSize: 30, cooldownSeconds: SET }));
      expect(Math.abs(Number(store.clock?.() ?? 0) - Date.now())).toBeLessThan(3_000);

      const [wanted = ""] = textsOf(await releasing.allocator.assign(pod("net.a", "node-1")));
      await releasing.allocator.releaseHandle({ handle: "net.a", node: "node-1" });
      const { block } = await blockIn(store);
      const [release] = Object.values(block.released ?? {});
      expect(Math.abs((release?.at ?? 0) * 1000 - Date.now())).toBeLessThan(5_000);

      for (const name of ["b", "c", "d"]) {
        expect(textsOf(await asking.allocator.assign(pod(`net.${name}`, "node-2")))).not.toContain(wanted);
      }
      const byName = { addressRequests: [{ kind: "given", address: address(wanted) }] } as const;
      for (const { allocator, node } of [
        { ...asking, node: "node-2" },
        { ...releasing, node: "node-1" },
      ]) {
        for (const more of [{}, byName]) {
          const refusal = (await rejectionOf(() => allocator.assign(pod("net.e", node, more)))) as PluginError;
          expect(refusal.kind).toBe("try-again-later");
          const left = Number(/in (\d+) s|another (\d+) s/.exec(refusal.message)?.slice(1).join(""));
          expect(left).toBeGreaterThan(SET - 60);
          expect(left).toBeLessThanOrEqual(SET + 4);
        }
      }

      // As if it had been released earlier.
      const { entry, block: latest } = await blockIn(store);
      const earlier = Object.entries(latest.released ?? {}).map(([ordinal, { at, ...owner }]) => {
        return [ordinal, { ...owner, at: at - SET - 10 }] as const;
      });
      const rested = { ...latest, released: Object.fromEntries(earlier) };
      expect(await store.commit([blockChange(rested, entry.revision)])).toMatchObject({ ok: true });
      expect(textsOf(await asking.allocator.assign(pod("net.e", "node-2")))).toEqual([wanted]);

      for (const handle of handles) {
        for (const node of ["node-1", "node-2"]) await asking.allocator.releaseHandle({ handle, node });
      }
      for (const node of ["node-1", "node-2"]) {
        const giving = { node, block: block.cidr, inUse: "release", resting: "forget" } as const;
        await asking.allocator.releaseAffinity(giving);
      }
    },
    120_000,
  );

  testServer(
    "an agent goes by the default of the cluster, without a request for it",
    async () => {
      const { store, allocator } = await host("agent", 0);
      await seed(store, poolChange("blue", "10.0.0.0/30", { blockSize: 30 }));
      await seed(store, configurationChange({ cooldownSeconds: SET }));
      await allocator.assign(pod("net.a", "node-1"));
      await allocator.releaseHandle({ handle: "net.a", node: "node-1" });
      for (const name of ["b", "c", "d"]) await allocator.assign(pod(`net.${name}`, "node-1"));
      expect(((await rejectionOf(() => allocator.assign(pod("net.e", "node-1")))) as PluginError).kind).toBe(
        "try-again-later",
      );
    },
    120_000,
  );
});
