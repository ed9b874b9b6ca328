/**
 * How long the first packet through a host port takes, on a host with one port
 * and on one with thousands:
 *
 *   client ── host (ports) ── pod       one new connection after another
 */

import { assignPorts } from "../../src/chained/portmap/assign-ports.ts";
import { ownerOf } from "../../src/chained/portmap/port-owner.ts";
import { addressOf } from "../../src/ip/address.ts";
import { closeNetlinkSocket } from "../../src/linux/netlink-socket.ts";
import { closeNetns, openNetlinkSocketIn, openNetns } from "../../src/linux/netns.ts";
import { askTcp, serveTcp } from "../../test/support/namespace-sockets.ts";
import { type ComparisonResult, runComparison } from "./comparison.ts";

const PORTS = 5_000;
const FIRST_PORT = 20_000;
const CONNECTIONS = 20;

export async function compareFirstPackets(): Promise<ComparisonResult> {
  const counts = [1, PORTS];
  const servers: Disposable[] = [];
  for (const count of counts) servers.push(await makeHost(count));
  const candidates = counts.map((count) => ({
    name: `${count} port${count === 1 ? "" : "s"}`,
    async run() {
      const port = FIRST_PORT + (count >> 1);
      for (let done = 0; done < CONNECTIONS; done++) {
        const reply = await askTcp(`/run/netns/${clientOf(count)}`, "192.0.2.1", port);
        if (!reply.startsWith("pod")) throw new Error(`no reply through port ${port}: ${reply}`);
      }
    },
  }));
  try {
    const title = `${CONNECTIONS} new connections through a host port`;
    return await runComparison({ title, candidates, baseline: "1 port", rounds: 40 });
  } finally {
    for (const server of servers) server[Symbol.dispose]();
  }
}

const hostOf = (count: number) => `vt-bench-host${count}`;
const clientOf = (count: number) => `vt-bench-client${count}`;
const podOf = (count: number) => `vt-bench-pod${count}`;

async function makeHost(count: number): Promise<Disposable> {
  const [host, client, pod] = [hostOf(count), clientOf(count), podOf(count)];
  const script = `
    for each in ${host} ${client} ${pod}; do ip netns add $each; ip -n $each link set lo up; done
    ip -n ${host} link add outside type veth peer name eth0 netns ${client}
    ip -n ${host} link add inside type veth peer name eth0 netns ${pod}
    ip -n ${host} addr add 192.0.2.1/24 dev outside; ip -n ${host} addr add 10.9.0.1/24 dev inside
    ip -n ${host} link set outside up; ip -n ${host} link set inside up
    ip -n ${client} addr add 192.0.2.2/24 dev eth0; ip -n ${client} link set eth0 up
    ip -n ${pod} addr add 10.9.0.2/24 dev eth0; ip -n ${pod} link set eth0 up
    ip -n ${pod} route add default via 10.9.0.1
    nsenter --net=/run/netns/${host} sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'`;
  const made = Bun.spawnSync(["sh", "-ec", script], { stderr: "pipe" });
  if (made.exitCode !== 0) throw new Error(`Cannot create a host: ${made.stderr}`);
  await mapPorts(`/run/netns/${host}`, count);
  return serveTcp(`/run/netns/${pod}`, "pod", 80, "0.0.0.0");
}

/** With the plugin's own code, since thousands of processes would take minutes. */
async function mapPorts(path: string, count: number): Promise<void> {
  const netns = openNetns(path);
  const pod = addressOf(4, 0x0a090002n);
  const any = addressOf(4, 0n);
  if (netns === undefined || pod === undefined || any === undefined) throw new Error(`no namespace ${path}`);
  const socket = openNetlinkSocketIn(netns, "netfilter");
  const records = Array.from({ length: count }, (_, index) => {
    const numbers = { protocol: 6, hostPort: FIRST_PORT + index, podPort: 80 };
    return { kind: "port", claim: { family: 4, hostAddress: any, podAddress: pod, ...numbers } } as const;
  });
  const owner = ownerOf("bench", { containerId: "pod", ifname: "eth0" });
  await assignPorts(socket, [{ family: 4, owner, netns: "", records }]);
  closeNetlinkSocket(socket);
  closeNetns(netns);
}
