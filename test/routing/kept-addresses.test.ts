/**
 * A pod that keeps its addresses is created again on another node. A third place goes on talking to them: a pod of another
 * node by VXLAN, and with BGP a host outside, by a router that learns the routes. While no pod has them, no packet reaches
 * another pod.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { hasEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { askTcpWithin } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { FOREIGN_AS, PASSWORD, startForeignRouter } from "./foreign-router.ts";
import { MODES, setMode } from "./modes.ts";
import { resource } from "./resource.ts";
import { gatewaysOf } from "./routed-network.ts";
import { openRoutedSite, type RoutedPod, type RoutedSite } from "./routed-site.ts";
import { startRouterEtcd } from "./router-datastore.ts";

const test = testNeeding(hostProblem(), hasEtcd ? undefined : "needs etcd", program("nft"), program("bird"));
const PORT = 80;
const PASSWORD_FILE = "/etc/bgp-password";
const PATIENCE_MILLISECONDS = 200;

for (const [title, mode, isByRouter] of [
  ["VXLAN", MODES.vxlanAlways, false],
  ["BGP", MODES.bgpMesh, true],
] as const) {
  describe(`kept addresses by ${title}`, () => {
    let site: RoutedSite;
    let client: string;
    beforeAll(async () => {
      if (hostProblem() !== undefined || !hasEtcd) return;
      site = await openRoutedSite({ startDatastore: startRouterEtcd, blockSizes: [29, 125] });
      await setMode(site, mode);
      await site.admin('patch ippool ipv4 -p {"spec":{"keepAddresses":true}}');
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

    test("follow the pod to another node, and lead to nobody meanwhile", async () => {
      const first = await site.addPod("node-1/db", { podName: "db-0" });
      await pollUntil(() => answers(first), "the client to reach the pod on its first node", 30_000);
      await site.removePod(first);
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
      const second = await site.addPod("node-4/db", { podName: "db-0" });
      const added = performance.now();
      expect(second.addresses).toEqual(first.addresses);
      await pollUntil(() => answers(second), "the client to reach the pod on its second node", 30_000);
      const followed = performance.now();
      console.log(
        `kept address by ${title}: ADD ${Math.round(added - start)} ms, reached ${Math.round(followed - added)} ms after it`,
      );
      // Back again: the route of the block is right, and that of the single address must go.
      await site.removePod(second);
      const third = await site.addPod("node-1/db", { podName: "db-0" });
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
