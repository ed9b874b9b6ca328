/**
 * What happens to packets between nodes if something fails: what the fault does not concern loses nothing, and the rest
 * is right again soon. Small every day, in full in the soak.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { singlePrefix } from "../../src/ip/prefix.ts";
import { writeBlock } from "../../src/model/ipam-block.ts";
import { blockKey } from "../../src/model/keys.ts";
import { hasEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { address } from "../support/ip.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { birdRoutes } from "./bird-routes.ts";
import { MODES, routePodsByHand, setMode } from "./modes.ts";
import { type Pair, pairsOf, untilReachable } from "./reachability.ts";
import type { NodeName } from "./routed-network.ts";
import { openRoutedSite, type RoutedPod, type RoutedSite } from "./routed-site.ts";
import { type RouterEtcd, startRouterEtcd } from "./router-datastore.ts";
import { type Delivery, startTraffic } from "./steady-traffic.ts";

const needs = [hostProblem(), hasEtcd ? undefined : "needs etcd", program("nft"), program("bird")];
const test = testNeeding(...needs);
const PODS = ["node-1/a", "node-2/a", "node-3/a", "node-4/a"] as const;
type PodName = (typeof PODS)[number];
/** What is damaged by hand is right again after this time. */
const HEALED_MILLISECONDS = 2_000;
/** How often BIRD compares its routes with the kernel's. */
const SCAN_MILLISECONDS = 2_000;
const KILLS = proofSize({ everyDay: 5, soak: 100 });
const OUTAGE_MILLISECONDS = proofSize({ everyDay: 2_000, soak: 60_000 });
const LIMIT_MILLISECONDS = proofSize({ everyDay: 60_000, soak: 600_000 });

describe("packets between nodes", () => {
  let site: RoutedSite<RouterEtcd>;
  let pods: ReadonlyMap<string, RoutedPod>;
  let pairs: readonly Pair[];
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openRoutedSite({ startDatastore: startRouterEtcd, blockSizes: [30, 126] });
    pods = new Map(await Promise.all(PODS.map(async (name) => [name, await site.addPod(name)] as const)));
    pairs = pairsOf([...pods.values()]);
    await untilReachable(pairs);
  }, 60_000);
  afterAll(() => site?.[Symbol.asyncDispose]());

  const pod = (name: PodName): RoutedPod => {
    const found = pods.get(name);
    if (found === undefined) throw new Error(`no pod ${name}`);
    return found;
  };

  /** Both families of each row, `FROM -> TO`, while the work is done. */
  const deliveriesDuring = async (rows: readonly `${PodName} -> ${PodName}`[], work: () => Promise<unknown>) => {
    const flows = rows.flatMap((row) => {
      const [from, to] = row.split(" -> ") as [PodName, PodName];
      return pod(to).addresses.map((address) => ({ from: pod(from).netns, to: pod(to).netns, address }));
    });
    const traffics = await Promise.all(flows.map((flow) => startTraffic(flow)));
    await work();
    return Promise.all(traffics.map((each) => each.stop()));
  };
  const lost = (deliveries: readonly Delivery[]) => deliveries.map((each) => each.lost);
  const longestGap = (deliveries: readonly Delivery[]) =>
    Math.round(Math.max(...deliveries.map((each) => each.longestGapMilliseconds)));
  const report = (what: string, milliseconds: number) => console.log(`${what}: ${Math.round(milliseconds)} ms`);

  const killAgent = async (node: NodeName) => {
    const agent = site.agent(node);
    await pollUntil(() => agent.pid > 0, "the agent to start");
    await agent.signal("KILL");
    await agent.ended;
  };

  const DAMAGES = {
    "routes that were flushed": "ip route flush proto 86; ip -6 route flush proto 86",
    "a tunnel device that was deleted": `ip link delete ${identity.vxlanDevice}; ip link delete ${identity.vxlanDeviceIpv6}`,
    "forwarding entries and neighbours that were flushed": [identity.vxlanDevice, identity.vxlanDeviceIpv6]
      .map((device) => `ip neighbour flush dev ${device} nud permanent; bridge fdb flush dev ${device}`)
      .join("; "),
    "a tunnel device that was set down": `ip link set ${identity.vxlanDevice} down; ip link set ${identity.vxlanDeviceIpv6} down`,
  };
  for (const [what, command] of Object.entries(DAMAGES)) {
    test(
      `recover from ${what}, and those of other nodes lose nothing`,
      async () => {
        let affected: readonly Delivery[] = [];
        const others = await deliveriesDuring(["node-2/a -> node-3/a", "node-4/a -> node-2/a"], async () => {
          affected = await deliveriesDuring(["node-1/a -> node-3/a", "node-4/a -> node-1/a"], async () => {
            await pod("node-1/a").host.must(["sh", "-c", command]);
            await untilReachable(pairs, HEALED_MILLISECONDS * 3);
          });
        });
        expect(lost(others)).toEqual([0, 0, 0, 0]);
        report(`${what}: the longest gap`, longestGap(affected));
        expect(longestGap(affected)).toBeLessThan(HEALED_MILLISECONDS);
      },
      LIMIT_MILLISECONDS,
    );
  }

  test(
    "are not lost if the agent is killed at any moment while pods come and go",
    async () => {
      const abort = new AbortController();
      const churnOn = async (node: "node-1" | "node-3") => {
        while (!abort.signal.aborted) {
          const names = ["x", "y", "z"].map((name) => `${node}/${name}` as const);
          const made = await Promise.all(names.map((name) => site.addPod(name)));
          for (const each of made) await site.removePod(each);
        }
      };
      const churn = Promise.all([churnOn("node-1"), churnOn("node-3")]);
      const deliveries = await deliveriesDuring(["node-1/a -> node-3/a", "node-2/a -> node-1/a"], async () => {
        for (let kill = 0; kill < KILLS; kill++) {
          await Bun.sleep(Math.random() * 600);
          await killAgent("node-1");
          await Bun.sleep(Math.random() * 50);
          site.startAgent("node-1");
        }
        abort.abort();
        await churn;
      });
      expect(lost(deliveries)).toEqual([0, 0, 0, 0]);
      const latest = await Promise.all((["node-1/late", "node-3/late"] as const).map((name) => site.addPod(name)));
      report(
        "after the last kill: a new pod is reachable",
        await untilReachable(pairsOf([...pods.values(), ...latest])),
      );
      for (const each of latest) await site.removePod(each);
    },
    LIMIT_MILLISECONDS,
  );

  testNeeding(...needs, program("etcdctl"))(
    "do not go to a node that writes blocks of its own around the pods of another one",
    async () => {
      const etcdctl = (...words: readonly string[]) =>
        site.network.router.must(["etcdctl", `--endpoints=${site.datastore.environment["ETCD_ENDPOINTS"]}`, ...words]);
      const stolen = pod("node-3/a").addresses.map((text) => singlePrefix(address(text)));
      // That node would forward them, and see them all.
      const ways = () =>
        Promise.all(
          pod("node-3/a").addresses.map((text) => pod("node-1/a").host.must(["ip", "-oneline", "route", "get", text])),
        );
      const before = await ways();
      const deliveries = await deliveriesDuring(["node-1/a -> node-3/a", "node-2/a -> node-3/a"], async () => {
        for (const cidr of stolen) {
          const block = { cidr, affinity: "host:node-4", allocations: [undefined], unallocated: [0], attributes: [] };
          const more = { sequenceNumber: 1n, sequenceNumberForAllocation: {}, deleted: false };
          await etcdctl("put", blockKey(cidr), writeBlock({ ...block, ...more }));
        }
        // Those who know the new pod have read the blocks before.
        const latest = await site.addPod("node-2/latest");
        await untilReachable(pairsOf([...pods.values(), latest]));
        expect(await ways()).toEqual(before);
        await site.removePod(latest);
      });
      for (const cidr of stolen) await etcdctl("del", blockKey(cidr));
      expect(lost(deliveries)).toEqual([0, 0, 0, 0]);
    },
    LIMIT_MILLISECONDS,
  );

  test(
    "are not lost while the datastore is gone, and what is damaged meanwhile recovers",
    async () => {
      const deliveries = await deliveriesDuring(["node-2/a -> node-3/a", "node-4/a -> node-2/a"], async () => {
        await site.datastore.kill();
        await Bun.sleep(OUTAGE_MILLISECONDS);
        await pod("node-1/a").host.must(["sh", "-c", DAMAGES["a tunnel device that was deleted"]]);
        const took = await untilReachable(pairs, HEALED_MILLISECONDS);
        report("a tunnel device that was deleted, without a datastore", took);
        await site.datastore.start();
      });
      expect(lost(deliveries)).toEqual([0, 0, 0, 0]);
      const late = await site.addPod("node-1/late");
      report(
        "after the datastore returned: a new pod is reachable",
        await untilReachable(pairsOf([...pods.values(), late])),
      );
      await site.removePod(late);
    },
    LIMIT_MILLISECONDS,
  );

  test(
    "of other nodes are not lost while a node is cut off, and its own flow again at once afterwards",
    async () => {
      const deliveries = await deliveriesDuring(["node-1/a -> node-2/a", "node-2/a -> node-4/a"], async () => {
        await site.network.cut("node-3");
        await Bun.sleep(OUTAGE_MILLISECONDS);
        await site.network.mend("node-3");
        report("after a node was cut off: all reach each other", await untilReachable(pairs, HEALED_MILLISECONDS));
      });
      expect(lost(deliveries)).toEqual([0, 0, 0, 0]);
    },
    LIMIT_MILLISECONDS,
  );

  describe("by BGP", () => {
    let routes: AsyncDisposable | undefined;
    beforeAll(async () => {
      if (needs.some((need) => need !== undefined)) return;
      routes = await routePodsByHand(site, [...pods.values()]);
      await setMode(site, MODES.bgpMesh);
      // Of both families to each other node: the router's routes hide those that are missing.
      const expected = 2 * (PODS.length - 1);
      const count = async () => (await birdRoutes(pod("node-1/a").host)).trim().split("\n").length;
      await pollUntil(async () => (await count()) >= expected, "all routes of BIRD");
      await untilReachable(pairs);
    }, 60_000);
    afterAll(() => routes?.[Symbol.asyncDispose]());

    const birdOf = async () =>
      (await pod("node-1/a").host.must(["cat", `${identity.runDirectory}/bird/bird.pid`])).trim();

    test(
      "are not lost if BIRD is killed",
      async () => {
        const before = await birdRoutes(pod("node-1/a").host);
        const rows = ["node-1/a -> node-2/a", "node-3/a -> node-1/a", "node-2/a -> node-4/a"] as const;
        const deliveries = await deliveriesDuring(rows, async () => {
          const killed = await birdOf();
          await pod("node-1/a").host.must(["kill", "-KILL", killed]);
          await pollUntil(async () => (await birdOf()) !== killed, "another BIRD");
          await Bun.sleep(OUTAGE_MILLISECONDS);
        });
        expect(lost(deliveries)).toEqual([0, 0, 0, 0, 0, 0]);
        expect(await birdRoutes(pod("node-1/a").host)).toBe(before);
      },
      LIMIT_MILLISECONDS,
    );

    test(
      "recover within the scan time of BIRD from routes that were flushed",
      async () => {
        const before = await birdRoutes(pod("node-1/a").host);
        const affected = await deliveriesDuring(["node-1/a -> node-2/a", "node-1/a -> node-3/a"], async () => {
          await pod("node-1/a").host.must(["sh", "-c", "ip route flush proto bird; ip -6 route flush proto bird"]);
          await pollUntil(async () => (await birdRoutes(pod("node-1/a").host)) === before, "the routes to return");
          await untilReachable(pairs);
        });
        report("routes of BIRD that were flushed: the longest gap", longestGap(affected));
        expect(longestGap(affected)).toBeLessThan(SCAN_MILLISECONDS + HEALED_MILLISECONDS);
      },
      LIMIT_MILLISECONDS,
    );

    test(
      "of other nodes are not lost while a node is cut off",
      async () => {
        const deliveries = await deliveriesDuring(["node-1/a -> node-2/a", "node-2/a -> node-4/a"], async () => {
          await site.network.cut("node-3");
          await Bun.sleep(OUTAGE_MILLISECONDS);
          await site.network.mend("node-3");
          report("by BGP, after a node was cut off: all reach each other", await untilReachable(pairs));
        });
        expect(lost(deliveries)).toEqual([0, 0, 0, 0]);
      },
      LIMIT_MILLISECONDS,
    );
  });
});
