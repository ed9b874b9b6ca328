/**
 * A host whose node agent collects flows: pods of two namespaces, one with a published port, two networks outside, Services by
 * rules like kube-proxy's, a masquerade, and a capture on every link.
 *
 *   outside 198.51.100.2 ─── out0  host  side0 ─── side 203.0.113.2        Service 10.96.0.7:1000 -> x/b, y/b port 80
 *                             │ │ │ │                                      Service 10.96.0.7:1001 -> x/a port 81
 *                        x/a x/b y/a y/b                                   port 8080 of the host -> x/a port 80
 *                                                    with kube-proxy: ports 31000, 31001 of the host -> the same Service
 */
import { readdirSync, readFileSync } from "node:fs";
import type { FlowAnswer } from "../../src/flows/flow-answer.ts";
import type { FlowLosses, FlowRecord } from "../../src/flows/flow-record.ts";
import { identity } from "../../src/identity.ts";
import { writeSysctl } from "../../src/linux/sysctl.ts";
import { type NodeAgentConfigurationSpec, nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
import type { Agent } from "../agent/agent.ts";
import { HOST_NODE, type HostSite, openHostSite } from "../policy/host-site.ts";
import type { End, Labels } from "../policy/policy-site.ts";
import { type ConntrackTable, openConntrackTable } from "../support/conntrack-table.ts";
import type { Host } from "../support/host.ts";
import { poolChange } from "../support/ipam.ts";
import { insideNetns } from "../support/namespace-sockets.ts";
import { capturePackets, type PacketCapture } from "../support/packet-capture.ts";
import { pollUntil } from "../support/poll.ts";
import { type ServicePlan, startProxiedService } from "./proxied-service.ts";
import { DROPPED_PORT, serveTraffic } from "./traffic.ts";

/** Of the node, if the Service is carried out by kube-proxy. */
export const NODE_PORTS = [31_000, 31_001] as const;
export const SERVICE = { 4: "10.96.0.7", 6: "fd96::7" } as const;
const POD_NAMES = ["x/a", "x/b", "y/a", "y/b"] as const;
export const END_NAMES = [...POD_NAMES, "outside", "side"] as const;

const RUN_DIRECTORY = identity.runDirectory.replace(/^\/var\/run\//, "/run/");

export interface FlowAnswers {
  readonly flows: readonly FlowRecord[];
  readonly losses: FlowLosses;
}

/** Flows of a node, as its collector answers. `query`: `since=…&pod=…`. */
export async function askFlows(host: Host, query = ""): Promise<FlowAnswers> {
  const flows: FlowRecord[] = [];
  let losses: FlowLosses | undefined;
  for (const answer of await askCollector(host, `/flows?${query}`)) {
    if ("flow" in answer) flows.push(answer.flow);
    else if ("losses" in answer) losses = answer.losses;
  }
  if (losses === undefined) throw new Error("the collector has not said what it has lost");
  return { flows, losses };
}

export async function askCollector(host: Host, path: string): Promise<readonly FlowAnswer[]> {
  const unix = host.view(`${RUN_DIRECTORY}/flows.sock`);
  const response = await fetch(`http://node${path}`, { unix });
  const text = await response.text();
  if (!response.ok) throw new Error(`the collector answers ${response.status}: ${text}`);
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

export async function untilCollecting(host: Host): Promise<void> {
  await pollUntil(
    () =>
      askFlows(host).then(
        () => true,
        () => false,
      ),
    "the collector to answer",
    20_000,
  );
}

/** Of the collector that runs now, in the process namespace of the host. */
export async function collectorPid(host: Host): Promise<number> {
  const find = () => {
    const all = readdirSync(host.view("/proc")).filter((name) => /^\d+$/.test(name));
    return all.filter((pid) => commandOf(host.view(`/proc/${pid}/cmdline`)).includes("\0collect-flows\0"));
  };
  await pollUntil(() => find().length === 1, "one collector to run", 20_000);
  return Number(find()[0]);
}

function commandOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // It has ended meanwhile.
    return "";
  }
}

/** Kills it, and waits until another one answers. `meanwhile`: when it is dead. */
export async function killCollector(host: Host, meanwhile: () => Promise<void>): Promise<void> {
  const pid = await collectorPid(host);
  await host.must(["kill", "-KILL", String(pid)]);
  await meanwhile();
  await pollUntil(async () => (await collectorPid(host)) !== pid, "another collector", 20_000);
  await untilCollecting(host);
}

/** Entries end soon after their connections, and not minutes later. */
export function shortenTimeouts(netns: string): void {
  const seconds = {
    tcp_timeout_syn_sent: 6,
    tcp_timeout_time_wait: 1,
    tcp_timeout_close: 1,
    tcp_timeout_fin_wait: 2,
    tcp_timeout_close_wait: 2,
    tcp_timeout_last_ack: 2,
    udp_timeout: 2,
    udp_timeout_stream: 2,
    icmp_timeout: 2,
    icmpv6_timeout: 2,
  };
  insideNetns(netns, () => {
    for (const [name, value] of Object.entries(seconds))
      writeSysctl(`net/netfilter/nf_conntrack_${name}`, String(value));
  });
}

/** A client that gets no answer gives up before the kernel of the host forgets the connection. */
function repeatLess(netns: string): void {
  insideNetns(netns, () => writeSysctl("net/ipv4/tcp_syn_retries", "1"));
}

export interface FlowSite extends AsyncDisposable {
  readonly hostSite: HostSite;
  readonly host: Host;
  readonly agent: Agent;
  readonly table: ConntrackTable;
  /** By the name of the end. */
  readonly captures: ReadonlyMap<string, PacketCapture>;
  end(name: string): End;
  /** The name of the end with the address. */
  endAt(address: string): string | undefined;
}

export interface FlowSiteOptions {
  readonly labels: Readonly<Record<string, Labels>>;
  /** Who carries out the Service; by default rules as those of kube-proxy, without ports of the node. */
  readonly services?: "kube-proxy";
}

/** Flows are switched on with the first `apply`. */
export async function openFlowSite({ labels, services }: FlowSiteOptions): Promise<FlowSite> {
  const hostSite = await openHostSite("Enabled");
  const { policies } = hostSite;
  const { host } = policies.site;
  await policies.labelNamespace("y", {});
  for (const name of POD_NAMES) {
    if (name === "x/a") await policies.labelPod(name, labels[name] ?? {});
    else await policies.addPod(name, labels[name] ?? {});
  }
  const pods = new Map(POD_NAMES.map((name) => [name as string, policies.ends.get(name)]));
  const end = (name: string): End => pods.get(name) ?? hostSite.end(name);
  await policies.site.store.put([
    poolChange("blue", "10.50.0.0/16", { natOutgoing: true }),
    poolChange("blue6", "fd50::/64", { natOutgoing: true }),
  ]);
  const stack = new AsyncDisposableStack();
  if (services === undefined) await host.must(["nft", "-f", "-"], { stdin: serviceRules(end) });
  else stack.use(await startProxiedService(host, servicePlan(end)));
  for (const name of [...END_NAMES, "host"]) stack.use(await serveTraffic(end(name)));
  for (const name of END_NAMES) {
    const inside = ["nsenter", `--net=${end(name).netns}`, "nft"];
    const chain = `{ type filter hook input priority 0; meta l4proto { tcp, udp } th dport ${DROPPED_PORT} drop; }`;
    const rules = Bun.spawnSync([...inside, `table inet drops { chain input ${chain}; }`], { stderr: "pipe" });
    if (rules.exitCode !== 0) throw new Error(rules.stderr.toString());
  }
  shortenTimeouts(host.netns);
  for (const name of [...END_NAMES, "host"]) repeatLess(end(name).netns);
  const captures = new Map(END_NAMES.map((name) => [name as string, stack.use(capturePackets(end(name).netns))]));
  const names = [...END_NAMES, "host"];
  const ofHost = [...end("host").addresses, "192.0.2.1", "2001:db8::1", "203.0.113.1", "2001:db8:2::1"];
  return {
    ...{ hostSite, host, captures, end },
    agent: policies.agent,
    table: stack.use(openConntrackTable(host.netns)),
    endAt: (address) =>
      ofHost.includes(address) ? "host" : names.find((name) => end(name).addresses.includes(address)),
    async [Symbol.asyncDispose]() {
      await stack.disposeAsync();
      await hostSite[Symbol.asyncDispose]();
    },
  };
}

/** `name`: otherwise of all nodes. */
export function flowsConfiguration(more: Partial<NodeAgentConfigurationSpec> = {}, name = "default") {
  const spec = { flows: "Enabled" as const, flowDeniedPerSecond: 1_000, flowsPerSecond: 100_000, ...more };
  return nodeAgentConfiguration.make({ name }, spec);
}

function servicePlan(end: (name: string) => End): ServicePlan {
  return {
    ...{ node: HOST_NODE, addresses: [SERVICE[4], SERVICE[6]], podRanges: ["10.50.0.0/16", "fd50::/64"] },
    nodeAddresses: end("host").addresses,
    ports: [
      { port: 1000, nodePort: NODE_PORTS[0], targetPort: 80, backends: [end("x/b"), end("y/b")] },
      { port: 1001, nodePort: NODE_PORTS[1], targetPort: 81, backends: [end("x/a")] },
    ],
  };
}

/** As kube-proxy: one of several backends by chance, also for what the host itself sends, and a masquerade of what a pod sends itself. */
export function serviceRules(end: (name: string) => End): string {
  return ([4, 6] as const)
    .map((family) => {
      const [words, at] = family === 4 ? (["ip", 0] as const) : (["ip6", 1] as const);
      const one = (name: string) => end(name).addresses[at];
      const asked = (port: number) => `${words} daddr ${SERVICE[family]} meta l4proto { tcp, udp } th dport ${port}`;
      const itself = POD_NAMES.map((name) => `${one(name)} . ${one(name)}`).join(", ");
      return `table ${words} services {
  chain services {
    ${asked(1000)} dnat to numgen random mod 2 map { 0 : ${one("x/b")}, 1 : ${one("y/b")} } : 80
    ${asked(1001)} dnat to numgen random mod 1 map { 0 : ${one("x/a")} } : 81
  }
  chain prerouting {
    type nat hook prerouting priority dstnat
    goto services
  }
  chain output {
    type nat hook output priority -100
    goto services
  }
  chain postrouting {
    type nat hook postrouting priority srcnat
    ct status dnat ${words} saddr . ${words} daddr { ${itself} } masquerade
  }
}`;
    })
    .join("\n");
}
