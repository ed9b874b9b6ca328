/**
 * A pod that keeps its addresses is created again on another node. A third place goes on talking to them: a pod of another
 * node by VXLAN, and with BGP a host outside, by a router that learns the routes. While no pod has them, no packet reaches
 * another pod. With etcd the pool says that addresses are kept, with the orchestrator's API an annotation of the pod, which a
 * StatefulSet owns.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { annotationKey } from "../../src/plugin/annotations.ts";
import { hasEtcd } from "../support/etcd.ts";
import { type Host, hostProblem } from "../support/host.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { askTcpWithin } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { FOREIGN_AS, PASSWORD, startForeignRouter } from "./foreign-router.ts";
import { MODES, setMode } from "./modes.ts";
import { resource } from "./resource.ts";
import { gatewaysOf, type NodeName } from "./routed-network.ts";
import { openRoutedSite, type RoutedPod, type RoutedSite } from "./routed-site.ts";
import { type PodMetadata, type RouterDatastore, startRouterApi, startRouterEtcd } from "./router-datastore.ts";

const PORT = 80;
const PASSWORD_FILE = "/etc/bgp-password";
const PATIENCE_MILLISECONDS = 200;

const OWNER = { apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: "1", controller: true };
const KEPT_BY_ANNOTATION: PodMetadata = {
  annotations: { [annotationKey("keepAddresses")]: "true" },
  ownerReferences: [OWNER],
};

interface Store {
  readonly title: string;
  readonly start: (router: Host) => Promise<RouterDatastore>;
  readonly problem: string | undefined;
  /** Of the pod; otherwise the pool keeps its addresses. */
  readonly metadata?: PodMetadata;
}

const ETCD: Store = { title: "etcd", start: startRouterEtcd, problem: hasEtcd ? undefined : "needs etcd" };
const API: Store = {
  ...{ title: "the orchestrator's API", start: (router) => startRouterApi(router), problem: apiServerProblem() },
  metadata: KEPT_BY_ANNOTATION,
};
const VXLAN = { title: "VXLAN", mode: MODES.vxlanAlways, isByRouter: false };
const BGP = { title: "BGP", mode: MODES.bgpMesh, isByRouter: true };
const ONLY_IN_SOAK = proofSize({ everyDay: "only in `make soak`", soak: undefined });

for (const [{ title, mode, isByRouter }, store, unneeded] of [
  [VXLAN, ETCD, undefined],
  [BGP, API, undefined],
  [VXLAN, API, ONLY_IN_SOAK],
  [BGP, ETCD, ONLY_IN_SOAK],
] as const) {
  describe(`kept addresses by ${title}, datastore ${store.title}`, () => {
    const needs = [hostProblem(), store.problem, program("nft"), program("bird"), unneeded];
    const test = testNeeding(...needs);
    let site: RoutedSite;
    let client: string;
    beforeAll(async () => {
      if (needs.some((need) => need !== undefined)) return;
      site = await openRoutedSite({ startDatastore: store.start, blockSizes: [29, 125] });
      await setMode(site, mode);
      if (store.metadata === undefined) await site.admin('patch ippool ipv4 -p {"spec":{"keepAddresses":true}}');
      client = isByRouter ? await learnByRouter(site) : (await site.addPod("node-2/client")).netns;
    }, 120_000);
    afterAll(() => site?.[Symbol.asyncDispose]());

    /** The name of who answers. */
    const asks = async (address: string) =>
      (await askTcpWithin(PATIENCE_MILLISECONDS, client, address, PORT)).split(" ")[0] ?? "";
    const answers = async (pod: RoutedPod) => {
      const names = await Promise.all(pod.addresses.map((address) => asks(address)));
      return names.every((name) => name === pod.name);
    };

    const addKept = (name: `${NodeName}/db`) =>
      site.addPod(name, { podName: "db-0", ...(store.metadata === undefined ? {} : { metadata: store.metadata }) });

    test("follow the pod to another node, and lead to nobody meanwhile", async () => {
      const first = await addKept("node-1/db");
      await pollUntil(() => answers(first), "the client to reach the pod on its first node", 30_000);
      await site.removePod(first);
      const waiting = JSON.parse(await site.admin(`ipam show --ip ${first.addresses[0]} -o json`));
      const owner = store.metadata === undefined ? undefined : `${OWNER.kind}/${OWNER.name}`;
      expect([waiting.state, waiting.kept.owner]).toEqual(["waiting", owner]);
      // Others fill the blocks of the node beside it, and listen on every address they have.
      const others = [await site.addPod("node-1/other"), await site.addPod("node-1/more")];
      expect(others.flatMap(({ addresses }) => addresses)).not.toContainAnyValues([...first.addresses]);
      for (const other of others) await countPackets(other, [...first.addresses, ...other.addresses]);
      const meanwhile = await Promise.all(
        Array.from({ length: 5 }, () => Promise.all(first.addresses.map((address) => asks(address)))),
      );
      expect(meanwhile.flat().filter((reply) => reply.includes("/"))).toEqual([]);
      for (const other of others) {
        await pollUntil(() => answers(other), "the client to reach another pod", 30_000);
        const counts = await packetCounts(other);
        expect(first.addresses.map((address) => counts.get(address))).toEqual([0, 0]);
        expect(other.addresses.map((address) => (counts.get(address) ?? 0) > 0)).toEqual([true, true]);
      }

      const start = performance.now();
      const second = await addKept("node-4/db");
      const added = performance.now();
      expect(second.addresses).toEqual(first.addresses);
      await pollUntil(() => answers(second), "the client to reach the pod on its second node", 30_000);
      const followed = performance.now();
      console.log(
        `kept address by ${title}, ${store.title}: ADD ${Math.round(added - start)} ms, reached ${Math.round(followed - added)} ms after it`,
      );
      // Back again: the route of the block is right, and that of the single address must go.
      await site.removePod(second);
      const third = await addKept("node-1/db");
      expect(third.addresses).toEqual(first.addresses);
      await pollUntil(() => answers(third), "the client to reach the pod on its first node again", 30_000);
      for (const pod of [third, ...others]) await site.removePod(pod);
    }, 120_000);
  });
}

/** The router learns the routes of the pods from all nodes. Returns the namespace outside. */
async function learnByRouter({ network, apply }: RoutedSite): Promise<string> {
  for (const { host } of network.nodes) host.writeFile(PASSWORD_FILE, `${PASSWORD}\n`);
  await startForeignRouter(network);
  const peer = { asNumber: FOREIGN_AS, password: { file: PASSWORD_FILE } };
  const peers = network.nodes.flatMap(({ name, subnet }) =>
    gatewaysOf(subnet).map((peerIP, index) => resource("BGPPeer", `${name}-${index}`, { ...peer, peerIP, node: name })),
  );
  await apply(...peers);
  return network.outside.netns;
}

/** Whatever arrives at its link, also what it does not accept. */
async function countPackets({ host, inner }: RoutedPod, addresses: readonly string[]): Promise<void> {
  const rules = addresses.map((address) => {
    const family = address.includes(":") ? "ip6" : "ip";
    return `add rule inet seen arrived ${family} daddr ${address} counter`;
  });
  const table = ["add table inet seen", "add chain inet seen arrived { type filter hook prerouting priority -300; }"];
  await host.must(["nsenter", `--net=${inner}`, "nft", "-f", "-"], { stdin: [...table, ...rules].join("\n") });
}

async function packetCounts({ host, inner }: RoutedPod): Promise<ReadonlyMap<string, number>> {
  const listed = await host.must(["nsenter", `--net=${inner}`, "nft", "list", "table", "inet", "seen"]);
  const rules = listed.matchAll(/daddr (\S+) counter packets (\d+)/g);
  return new Map(Array.from(rules, ([, address = "", count]) => [address, Number(count)]));
}
