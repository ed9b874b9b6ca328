/**
 * A host with a client and a server as pods, whose connections a rule of a policy accepts, with or without flows: what a
 * connection costs, and what observes it.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { NODE_AGENT_CONFIGURATION } from "../../src/model/kinds.ts";
import { nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
import { askCollector, askFlows, untilCollecting } from "../../test/flows/flow-site.ts";
import { openPolicySite, type PodEnd, type PolicySite } from "../../test/policy/policy-site.ts";
import type { Host } from "../../test/support/host.ts";
import { runIn } from "../../test/support/netns.ts";

export const SERVER_PORT = 80;
/** Nobody answers there: the server drops what comes to it. The policy accepts it. */
export const SCANNED_PORTS = { first: 10_001, count: 50_000 } as const;

export interface Seen {
  readonly count: number;
  readonly losses: ReadonlyMap<string, number>;
}

export interface FlowSite extends AsyncDisposable {
  readonly host: Host;
  readonly client: PodEnd;
  readonly server: PodEnd;
  /** Of the collector, as this process sees it. */
  collector(): number;
  /** How many connections it has seen since then, also those that are only summed, and its losses. */
  seenSince(time: number): Promise<Seen>;
}

export async function openFlowSite(flows: "Enabled" | "Disabled"): Promise<FlowSite> {
  const policies = await openPolicySite();
  const { host } = policies.site;
  await policies.labelNamespace("shop", {});
  const client = await policies.addPod("shop/client", { app: "client" });
  const server = await policies.addPod("shop/server", { app: "server" });
  await putConfiguration(policies, flows);
  await policies.setPolicies([
    {
      namespace: "shop",
      name: "server",
      spec: {
        selector: "app == 'server'",
        types: ["Ingress"],
        ingress: [{ action: "Allow", protocol: "TCP", source: { selector: "app == 'client'" } }],
      },
    },
  ]);
  await policies.untilApplied();
  const { first, count } = SCANNED_PORTS;
  const drop = `{ type filter hook prerouting priority -300; tcp dport ${first}-${first + count - 1} drop; }`;
  runIn({ name: "", path: server.netns }, ["nft", `table inet drops { chain dropped ${drop}; }`]);
  if (flows === "Enabled") await untilCollecting(host);
  return {
    ...{ host, client, server },
    collector: () => collectorOf(host),
    async seenSince(time) {
      const answers = await askCollector(host, `/rollups?since=${time}`);
      const count = answers.reduce((sum, answer) => sum + ("rollup" in answer ? answer.rollup.flows : 0), 0);
      const { losses } = await askFlows(host, "last=1");
      return { count, losses: new Map(Object.entries(losses).map(([name, value]) => [name, Number(value)])) };
    },
    [Symbol.asyncDispose]: () => policies[Symbol.asyncDispose](),
  };
}

async function putConfiguration({ store }: PolicySite, flows: "Enabled" | "Disabled"): Promise<void> {
  const value = nodeAgentConfiguration.write(nodeAgentConfiguration.make({ name: "default" }, { flows }));
  await store.commit([{ kind: "put", key: NODE_AGENT_CONFIGURATION.key({ name: "default" }), value }]);
}

/** Among all processes of the machine the one in the namespace of the host. */
function collectorOf({ netns }: Host): number {
  const namespaceOf = (path: string) => readLink(`${path.replace(/\/net$/, "")}/pid`);
  const wanted = namespaceOf(netns);
  const found = readdirSync("/proc").filter(
    (pid) =>
      /^\d+$/.test(pid) &&
      readText(`/proc/${pid}/cmdline`).includes("\0collect-flows\0") &&
      namespaceOf(`/proc/${pid}/ns/net`) === wanted,
  );
  if (found.length !== 1) throw new Error(`${found.length} collectors run`);
  return Number(found[0]);
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // The process has ended meanwhile.
    return "";
  }
}

function readLink(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return "";
  }
}
