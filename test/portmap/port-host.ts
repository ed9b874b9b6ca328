/**
 * A private host with pods on it and a client outside:
 *
 *   client 198.51.100.2, fd00:2::2  ───  198.51.100.1, .3, fd00:2::1  host  ───  pods by ptp, bridge or ours + portmap
 */
import { existsSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { hostPortsFolder } from "../../src/chained/portmap/record-file.ts";
import type { JsonObject } from "../../src/cni/json.ts";
import { identity } from "../../src/identity.ts";
import type { Finished, Host } from "../support/host.ts";
import { BIN_DIRECTORY, upstreamPlugins } from "../support/network-under-test.ts";
import { openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { type Runtime, type RuntimeAttachment, startRuntime } from "../support/runtime-driver.ts";

export const HOST4 = "198.51.100.1";
export const OTHER_HOST4 = "198.51.100.3";
export const HOST6 = "fd00:2::1";
export const CLIENT4 = "198.51.100.2";
export const CLIENT6 = "fd00:2::2";

/** Without the link `/var/run`, which would lead to the real host if followed from outside. */
const RECORDS = hostPortsFolder(identity.runDirectory.replace(/^\/var\/run\//, "/run/"));

/** `own`: the plugin of this product, on its own datastore. */
export type MainPlugin = "own" | "ptp" | "bridge";

export interface PortMappingRequest {
  readonly hostPort: number;
  readonly containerPort: number;
  readonly protocol?: string;
  readonly hostIP?: string;
}

export interface Pod {
  readonly attachment: RuntimeAttachment;
  /** Its namespace, for the test's own sockets. */
  readonly netns: string;
}

const upstream = await upstreamPlugins();

/** Why pods cannot be attached with this plugin: ptp and bridge are upstream's. */
export function mainPluginProblem(main: MainPlugin = "ptp"): string | undefined {
  return main !== "own" && "missing" in upstream ? upstream.missing : undefined;
}

export interface PortHost extends AsyncDisposable {
  readonly host: Host;
  /** Namespaces for the test's own sockets. */
  readonly client: string;
  readonly netns: string;
  /** A namespace for a container, not yet attached. */
  makePod(name: string, mappings: readonly PortMappingRequest[]): Promise<Pod>;
  removeNetns(pod: Pod): Promise<void>;
  network(options?: NetworkOptions): Runtime;
  /** Writes the list where the node agent and the admin tool look for it. */
  install(options?: NetworkOptions): void;
  /** Runs `vendorctl node restore`, while no node agent runs. */
  restore(): Promise<Finished>;
  /** Where ADDs leave files on the host. */
  readonly recordFolder: string;
  /** The files that ADDs left there. */
  files(): readonly string[];
  /** Every element and chain of both tables, as `nft` lists them; empty if nobody has a port. */
  kept(): Promise<readonly string[]>;
}

export interface NetworkOptions {
  readonly main?: MainPlugin;
  readonly name?: string;
  readonly cniVersion?: string;
  readonly families?: readonly (4 | 6)[];
  readonly portmap?: JsonObject;
  /** Where in the list `bandwidth` is; absent: nowhere. */
  readonly bandwidth?: "before" | "after";
}

/** Without duplicate address detection, addresses are usable at once: there are no other hosts on these links. */
const NO_DUPLICATE_DETECTION =
  "echo 0 > /proc/sys/net/ipv6/conf/all/accept_dad; echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad";

/** As on a host without br_netfilter: only then are ports behind a bridge served on 127.0.0.1. */
const NO_BRIDGE_NETFILTER =
  "file=/proc/sys/net/bridge/bridge-nf-call-iptables; if [ -e $file ]; then echo 0 > $file; fi";

const OUTSIDE = `
${NO_DUPLICATE_DETECTION}
${NO_BRIDGE_NETFILTER}
ip netns add vt-client
ip link add outside type veth peer name eth0 netns vt-client
ip link set outside up
ip address add ${HOST4}/24 dev outside
ip address add ${OTHER_HOST4}/24 dev outside
ip address add ${HOST6}/64 dev outside nodad
ip route add default via ${CLIENT4}
ip -n vt-client link set lo up
ip -n vt-client link set eth0 up
ip -n vt-client address add ${CLIENT4}/24 dev eth0
ip -n vt-client address add ${CLIENT6}/64 dev eth0 nodad
`;

export async function openPortHost(): Promise<PortHost> {
  const site = await openPluginSite("embedded");
  const { host } = site;
  if ("path" in upstream) {
    for (const name of ["ptp", "bridge", "host-local"]) {
      symlinkSync(join(upstream.path, name), host.view(join(BIN_DIRECTORY, name)));
    }
  }
  for (const name of [identity.product, "portmap", "bandwidth"]) {
    symlinkSync(builtProgram(name), host.view(join(BIN_DIRECTORY, name)));
  }
  await host.must(["sh", "-ec", OUTSIDE]);
  const view = (name: string) => host.view(`/run/netns/${name}`);

  return {
    host,
    client: view("vt-client"),
    netns: host.netns,
    async makePod(name, portMappings) {
      await host.must(["ip", "netns", "add", `vt-${name}`]);
      const settle = `ip link set lo up; ${NO_DUPLICATE_DETECTION}`;
      await host.must(["nsenter", `--net=/run/netns/vt-${name}`, "sh", "-c", settle]);
      const attachment = { containerId: name, netns: `/run/netns/vt-${name}`, capabilities: { portMappings } };
      return { attachment, netns: view(`vt-${name}`) };
    },
    async removeNetns({ attachment }) {
      await host.must(["ip", "netns", "delete", attachment.netns.slice("/run/netns/".length)]);
    },
    network: (options = {}) =>
      startRuntime({ conflist: conflistOf(site, options), pluginDirectory: BIN_DIRECTORY, run: host.run }),
    install(options = {}) {
      host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify(conflistOf(site, options)));
    },
    restore() {
      const store = ["--datastore-type", "embedded", "--datastore-path", String(site.config()["datastore_path"])];
      return host.run([builtProgram(identity.adminTool), "node", "restore", "--name", "node-1", ...store]);
    },
    recordFolder: RECORDS,
    files() {
      const folder = host.view(RECORDS);
      return existsSync(folder) ? readdirSync(folder) : [];
    },
    async kept() {
      const lines: string[] = [];
      for (const family of ["ip", "ip6"]) {
        const { code, stdout } = await host.run(["nft", "-n", "list", "table", family, identity.hostPortTable]);
        if (code === 0) lines.push(...keptLines(family, stdout));
      }
      return lines;
    },
    [Symbol.asyncDispose]: () => site[Symbol.asyncDispose](),
  };
}

/** The elements of `… elements = { a, b }`, each a line, and the chains that count single addresses. */
function keptLines(family: string, listing: string): readonly string[] {
  const lines: string[] = [];
  let set = "";
  for (const line of listing.replaceAll(/,\s*\n\s*/g, ", ").split("\n")) {
    set = /^\t(?:map|set) (\S+) /.exec(line)?.[1] ?? set;
    const elements = /elements = \{ (.*) \}/.exec(line)?.[1];
    if (elements !== undefined) for (const each of elements.split(", ")) lines.push(`${family} ${set}: ${each.trim()}`);
    const chain = /^\tchain (single-\S+) /.exec(line)?.[1];
    if (chain !== undefined) lines.push(`${family} chain ${chain}`);
  }
  return lines;
}

function conflistOf(site: PluginSite, options: NetworkOptions): JsonObject {
  const { main = "ptp", name = "ports", cniVersion = "1.1.0", portmap = { snat: true } } = options;
  const first = firstPlugin(site, main, options.families ?? [4, 6]);
  const ports = { type: "portmap", capabilities: { portMappings: true }, ...portmap };
  const rates = { type: "bandwidth", capabilities: { bandwidth: true } };
  const chained = { before: [rates, ports], after: [ports, rates], none: [ports] }[options.bandwidth ?? "none"];
  return { cniVersion, name, plugins: [first, ...chained] };
}

function firstPlugin(site: PluginSite, main: MainPlugin, families: readonly (4 | 6)[]): JsonObject {
  if (main === "own") return site.config();
  const ranges = families.map((family) => [{ subnet: family === 4 ? "10.77.0.0/24" : "fd77::/64" }]);
  const routes = families.map((family) => ({ dst: family === 4 ? "0.0.0.0/0" : "::/0" }));
  const ipam = { type: "host-local", dataDir: "/var/lib/cni/networks", ranges, routes };
  const bridge = { bridge: "ports0", isGateway: true, hairpinMode: true };
  return { type: main, ipam, ...(main === "bridge" ? bridge : {}) };
}
