/**
 * A connection between pods of two nodes has a record on each. They are joined by the ends after translation; behind a masquerade the
 * second node cannot know the pod, and names the first node.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import type { FlowEnd, FlowRecord } from "../../src/flows/flow-record.ts";
import { NODE, NODE_AGENT_CONFIGURATION } from "../../src/model/kinds.ts";
import { node } from "../../src/model/node.ts";
import { openPolicySite, type PodEnd, type PolicySite } from "../policy/policy-site.ts";
import { connect, routeTo } from "../policy/two-nodes.ts";
import { openConntrackTable } from "../support/conntrack-table.ts";
import { type Host, hostProblem, openHost } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { askFlows, flowsConfiguration, shortenTimeouts, untilCollecting } from "./flow-site.ts";
import { attempt, serveTraffic } from "./traffic.ts";

const needs = [hostProblem(), program("nft")];
const test = testNeeding(...needs);
const SERVICE = { 4: "10.96.0.7", 6: "fd96::7" } as const;
const SERVICE_PORT = 1000;
/** Connections to it are masqueraded by the first node. */
const MASQUERADED_PORT = 81;
const NODES = [
  { name: "node-1", addresses: ["203.0.113.18/28", "2001:db8:100::2/64"] },
  { name: "node-2", addresses: ["203.0.113.34/28", "2001:db8:200::2/64"] },
] as const;

describe("flows of two nodes", () => {
  let router: Host;
  let sites: readonly [PolicySite, PolicySite];
  let client: PodEnd;
  let server: PodEnd;
  let listening: Disposable;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    router = await openHost();
    const first = await openPolicySite({ node: "node-1" });
    const second = await openPolicySite({ node: "node-2", sharedStore: first.site.store });
    sites = [first, second];
    await connect(router, first.site.host, 1);
    await connect(router, second.site.host, 2);
    const configuration = NODE_AGENT_CONFIGURATION.codec.write(flowsConfiguration());
    await first.site.store.put([
      ...NODES.map(({ name, addresses: [ipv4Address, ipv6Address] }) => ({
        ...{ kind: "put" as const, key: NODE.key({ name }) },
        value: node.write(node.make({ name }, { bgp: { ipv4Address, ipv6Address } })),
      })),
      { kind: "put", key: NODE_AGENT_CONFIGURATION.key({ name: "default" }), value: configuration },
    ]);
    await first.labelNamespace("x", {});
    client = await first.addPod("x/client", { app: "client" });
    server = await second.addPod("x/server", { app: "server" });
    await routeTo(router, client, 1);
    await routeTo(router, server, 2);
    await first.setPolicies([
      {
        ...{ namespace: "x", name: "server" },
        spec: { selector: "app == 'server'", types: ["Ingress"], ingress: [{ action: "Allow", protocol: "TCP" }] },
      },
    ]);
    for (const each of sites) {
      await each.untilApplied();
      await untilCollecting(each.site.host);
      shortenTimeouts(each.site.host.netns);
    }
    await first.site.host.must(["nft", "-f", "-"], { stdin: translations(server) });
    listening = await serveTraffic(server);
  });
  afterAll(async () => {
    listening?.[Symbol.dispose]();
    for (const site of sites?.toReversed() ?? []) await site[Symbol.asyncDispose]();
    await router?.[Symbol.asyncDispose]();
  });

  /** The records of one connection that has ended, on both nodes. */
  async function recordsOf(address: string, port: number): Promise<readonly [FlowRecord, FlowRecord]> {
    const since = Date.now();
    await attempt(sites[0].site.host, { from: client, address, protocol: "tcp", port, up: 5_000, down: 700 });
    let found: readonly FlowRecord[] = [];
    await pollUntil(async () => {
      const all = await Promise.all(sites.map((each) => endedSince(each, since)));
      found = all.flat();
      return all.every(({ length }) => length === 1);
    }, "one record of each node").catch(() => {});
    const [first, second, ...others] = found;
    if (first === undefined || second === undefined || others.length > 0)
      throw new Error(`not one record on each node: ${JSON.stringify(found)}`);
    return [first, second];
  }

  for (const family of [4, 6] as const) {
    const addressOf = ({ addresses }: PodEnd) => addresses[family === 4 ? 0 : 1];

    test(`each node says what it has decided, about pods of both: IPv${family}`, async () => {
      const [first, second] = await recordsOf(addressOf(server), 80);

      expect(joined(first)).toEqual(joined(second));
      for (const record of [first, second]) {
        expect(record.source).toMatchObject({ kind: "pod", namespace: "x", name: "client", node: "node-1" });
        expect(record.destination).toMatchObject({ kind: "pod", namespace: "x", name: "server", node: "node-2" });
        expect(record.verdict).toBe("allowed");
      }
      expect([first.node, second.node]).toEqual(["node-1", "node-2"]);
      expect([first.direction, second.direction]).toEqual(["egress", "ingress"]);
      expect(pointsOf(first)).toEqual(["workload egress: profile egress"]);
      expect(pointsOf(second)).toEqual(["workload ingress: x/server ingress 0"]);
      expect([first.sent, first.received]).toEqual([second.sent, second.received]);
    });

    test(`the first names the Service, both the backend: IPv${family}`, async () => {
      const [first, second] = await recordsOf(SERVICE[family], SERVICE_PORT);

      expect(first.destination).toMatchObject({ address: SERVICE[family], port: SERVICE_PORT });
      expect(first.backend).toMatchObject({ kind: "pod", name: "server", port: 80 });
      expect(second.destination).toMatchObject({ kind: "pod", name: "server", port: 80 });
      expect(second.backend).toBeUndefined();
      expect(joined(first)).toEqual(joined(second));
    });

    test(`behind a masquerade the second names the node: IPv${family}`, async () => {
      const [first, second] = await recordsOf(addressOf(server), MASQUERADED_PORT);

      expect(first.source).toMatchObject({ kind: "pod", name: "client" });
      expect(first.seenAs?.address).toBe(NODES[0].addresses[family === 4 ? 0 : 1].replace(/\/.*/, ""));
      expect(second.source).toMatchObject({ kind: "host", name: "node-1", address: first.seenAs?.address });
      expect(joined(first)).toEqual(joined(second));
    });
  }
});

async function endedSince({ site: { host } }: PolicySite, since: number): Promise<readonly FlowRecord[]> {
  using table = openConntrackTable(host.netns);
  // The kernel ends entries whose time is over when they are listed.
  table.list();
  const { flows } = await askFlows(host, `since=${since}&protocol=tcp`);
  return flows.filter(({ start, state }) => start >= since && state === "ended");
}

/** The ends as the packets between the nodes have them. */
function joined({ source, seenAs, destination, backend }: FlowRecord) {
  const place = ({ address, port }: Pick<FlowEnd, "address" | "port">) => ({ address, port });
  return [place(seenAs ?? source), place(backend ?? destination)];
}

function pointsOf({ decisions }: FlowRecord): readonly string[] {
  return decisions.map(({ point, rule }) => `${point}: ${rule}`);
}

function translations({ addresses: [ipv4, ipv6] }: PodEnd): string {
  return `
table ip services {
  chain prerouting {
    type nat hook prerouting priority dstnat
    ip daddr ${SERVICE[4]} tcp dport ${SERVICE_PORT} dnat to ${ipv4}:80
  }
  chain postrouting {
    type nat hook postrouting priority srcnat
    tcp dport ${MASQUERADED_PORT} masquerade
  }
}
table ip6 services {
  chain prerouting {
    type nat hook prerouting priority dstnat
    ip6 daddr ${SERVICE[6]} tcp dport ${SERVICE_PORT} dnat to [${ipv6}]:80
  }
  chain postrouting {
    type nat hook postrouting priority srcnat
    tcp dport ${MASQUERADED_PORT} masquerade
  }
}`;
}
