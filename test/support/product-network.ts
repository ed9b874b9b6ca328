/** The product as a network under test: its plugin and IPAM on either datastore, with its own host ports and shaping. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CNI_VERSIONS, FIRST_CHAINING_VERSION, isAtLeast, isCniVersion } from "../../src/cni/version.ts";
import { BANDWIDTH_ENTRY } from "../../src/config/installed-network-list.ts";
import { identity } from "../../src/identity.ts";
import { hasEtcd } from "./etcd.ts";
import { startEtcdOnHost } from "./etcd-on-host.ts";
import type { Host } from "./host.ts";
import { anyUpstreamPlugins, BIN_DIRECTORY, type NetworkUnderTest } from "./network-under-test.ts";
import { pollUntil } from "./poll.ts";
import type { StoreKind } from "./test-store.ts";

interface StoreRow {
  readonly missing?: string;
  /** The fields of the network config that select it. */
  readonly config: Readonly<Record<string, string>>;
  /** The same for the admin tool. */
  readonly environment: Readonly<Record<string, string>>;
  start(host: Host): Promise<unknown>;
}

const ENDPOINT = "http://127.0.0.1:2379";

const STORES: Readonly<Record<StoreKind, StoreRow>> = {
  embedded: {
    config: { datastore_type: "embedded" },
    environment: { DATASTORE_TYPE: "embedded" },
    start: async () => {},
  },
  etcd: {
    ...(hasEtcd ? {} : { missing: "needs the program etcd" }),
    config: { etcd_endpoints: ENDPOINT },
    environment: { ETCD_ENDPOINTS: ENDPOINT },
    start: startEtcdOnHost,
  },
};

const POOLS = { "client-ipv4": "10.78.0.0/24", "client-ipv6": "fd78::/120" };

const AGENT_LOG = "node-agent.log";

export async function productNetwork(
  kind: StoreKind,
  callsAreDone: "by themselves" | "by the node agent" = "by themselves",
): Promise<NetworkUnderTest> {
  const isServed = callsAreDone === "by the node agent";
  const name = `own-${kind}${isServed ? "-served" : ""}`;
  const { missing, config, environment, start } = STORES[kind];
  const admin = (host: Host, args: readonly string[], stdin?: string) =>
    host.must([join(BIN_DIRECTORY, identity.adminTool), ...args], {
      environment,
      ...(stdin === undefined ? {} : { stdin }),
    });
  return {
    title: `${identity.product} + ${identity.ipamType} on ${kind}${isServed ? ", served by the node agent" : ""}`,
    name,
    ...(missing === undefined ? {} : { missing }),
    addressPrefixes: ["10.78.0.", "fd78::"],
    versions: CNI_VERSIONS,
    collectsGarbage: true,
    // Upstream's for `loopback`, which the CRI calls for every pod.
    pluginDirectories: [join(import.meta.dir, "../../dist/bin"), await anyUpstreamPlugins()],
    conflist: (cniVersion) => ({ cniVersion, name, plugins: pluginsOf(cniVersion, config) }),
    async prepare(host) {
      // Ours assigns none to the host: without an address it could not send requests.
      await host.must(["ip", "addr", "add", "192.0.2.1/32", "dev", "lo"]);
      await host.must(["ip", "addr", "add", "2001:db8::1/128", "dev", "lo"]);
      await start(host);
      await admin(host, ["datastore", "init"]);
      const apiVersion = `${identity.apiGroup}/v3`;
      const pools = Object.entries(POOLS).map(([pool, cidr]) =>
        JSON.stringify({ apiVersion, kind: "IPPool", metadata: { name: pool }, spec: { cidr } }),
      );
      await admin(host, ["apply", "-f", "-"], pools.join("\n---\n"));
      if (isServed) await startNodeAgent(host);
    },
    kept: (host) => recordedBy((...args) => admin(host, args)),
    ...(isServed ? { served: servedCalls } : {}),
  };
}

/** Every address and endpoint in the datastore, read with the admin tool. */
export async function recordedBy(admin: (...args: readonly string[]) => Promise<string>): Promise<readonly string[]> {
  const [usage, endpoints] = await Promise.all([
    admin("ipam", "show", "-o", "json"),
    admin("get", "workloadendpoints", "-A", "-o", "name"),
  ]);
  const { pools } = JSON.parse(usage) as { pools: readonly { pool: string; used: number }[] };
  return [
    ...pools.filter(({ used }) => used > 0).map(({ pool, used }) => `${used} of ${pool}`),
    ...endpoints.split("\n").filter((line) => line !== ""),
  ];
}

async function startNodeAgent(host: Host): Promise<void> {
  host.start([join(BIN_DIRECTORY, identity.nodeAgent)], AGENT_LOG);
  await pollUntil(() => agentLog(host).includes("serves the plugins' calls"), "the node agent to serve");
}

function servedCalls(host: Host): readonly string[] {
  return agentLog(host).match(/\w+ [A-Z]+: exit code \d+/g) ?? [];
}

function agentLog(host: Host): string {
  const path = host.view(join(host.directory, AGENT_LOG));
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

/** Before 0.3.0 there are no chains. */
function pluginsOf(cniVersion: string, datastore: Readonly<Record<string, string>>): readonly object[] {
  const ipam = { type: identity.ipamType, assign_ipv6: "true" };
  const capabilities = { ips: true, mac: true };
  const main = { type: identity.product, log_level: "ERROR", ...datastore, ipam, capabilities };
  const chains = isCniVersion(cniVersion) && isAtLeast(cniVersion, FIRST_CHAINING_VERSION);
  if (!chains) return [main];
  return [
    main,
    { type: "portmap", capabilities: { portMappings: true }, snat: true },
    // No rates here: they would override those of a pod's annotations.
    BANDWIDTH_ENTRY,
  ];
}
