/**
 * Packets between nodes that exchange routes with the help of others: a route reflector, and a router of somebody else with
 * a password and a filter.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { hasEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { areRoutedByBird, birdRoutes } from "./bird-routes.ts";
import { ANNOUNCED, FOREIGN_AS, PASSWORD, REFUSED, startForeignRouter } from "./foreign-router.ts";
import { MODES, routePodsByHand, setMode } from "./modes.ts";
import { type Pair, pairsOf, unreachable, untilReachable } from "./reachability.ts";
import { resource } from "./resource.ts";
import { gatewaysOf } from "./routed-network.ts";
import { openRoutedSite, type RoutedPod, type RoutedSite } from "./routed-site.ts";
import { startRouterEtcd } from "./router-datastore.ts";

const needs = [hostProblem(), hasEtcd ? undefined : "needs etcd", program("nft"), program("bird")];
const test = testNeeding(...needs);
const PODS = ["node-1/a", "node-2/a", "node-3/a", "node-4/a"] as const;
const PASSWORD_FILE = "/etc/bgp-password";

describe("pods reach each other by BGP", () => {
  let site: RoutedSite;
  let pods: readonly RoutedPod[];
  let pairs: readonly Pair[];
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openRoutedSite({ startDatastore: startRouterEtcd });
    pods = await Promise.all(PODS.map((name) => site.addPod(name)));
    pairs = pairsOf(pods, site.nodes);
    for (const { host } of site.network.nodes) host.writeFile(PASSWORD_FILE, `${PASSWORD}\n`);
    await untilReachable(pairs);
  }, 60_000);
  afterAll(() => site?.[Symbol.asyncDispose]());

  test("with a route reflector instead of the mesh", async () => {
    await using _routes = await routePodsByHand(site, pods);
    await setMode(site, MODES.bgpPeers);
    await pollUntil(async () => (await unreachable(pairs)).length > 0, "no routes without the mesh");
    await site.admin("label node node-2 reflector=true");
    await site.admin('patch node node-2 -p {"spec":{"bgp":{"routeReflectorClusterID":"244.0.0.1"}}}');
    await site.apply(resource("BGPPeer", "reflectors", { nodeSelector: "all()", peerSelector: "reflector == 'true'" }));
    await pollUntil(() => areRoutedByBird(pairs), "the routes of the reflector");
    await untilReachable(pairs);
    await site.admin("delete bgppeer reflectors");
    // A reflector is not a part of the mesh.
    await site.admin('patch node node-2 -p {"spec":{"bgp":{"routeReflectorClusterID":null}}}');
  });

  test("with a router that has a password, and whose networks are filtered", async () => {
    const router = await startForeignRouter(site.network);
    const rules = (index: 0 | 1) => [{ action: "Reject", cidr: REFUSED[index], matchOperator: "Equal" }];
    // Each node announces its own blocks only: for the router, a node is not the way to the blocks of others.
    const own = [{ action: "Reject", source: "RemotePeers" }];
    await setMode(site, MODES.bgpMesh);
    await site.apply(
      resource("BGPFilter", "router", { importV4: rules(0), importV6: rules(1), exportV4: own, exportV6: own }),
      ...(["west", "east"] as const).flatMap((subnet) =>
        gatewaysOf(subnet).map((peerIP, index) =>
          resource("BGPPeer", `${subnet}-${index}`, {
            ...{ nodeSelector: `subnet == '${subnet}'`, peerIP, asNumber: FOREIGN_AS },
            ...{ password: { file: PASSWORD_FILE }, filters: ["router"] },
          }),
        ),
      ),
    );
    await pollUntil(() => areRoutedByBird(pairs), "the routes of the mesh");
    await untilReachable(pairs);
    expect(await router.ask("show protocols")).toContain("Established");
    for (const { host } of site.network.nodes) {
      const has = async (network: string) => (await birdRoutes(host)).includes(network);
      for (const network of ANNOUNCED) await pollUntil(() => has(network), `a route to ${network}`);
      for (const network of REFUSED) expect(await has(network)).toBe(false);
    }
  });
});
