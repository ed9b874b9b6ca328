/**
 * A network as the client tests see it: a config list, the plugins behind it, and
 * how to ask it what it still keeps. The same tests then run over every row.
 */
import { existsSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { type Built, part, partIfBuilt } from "../parts/build.ts";
import { type Host, hostProblem } from "./host.ts";

export interface NetworkUnderTest {
  /** Stands in the tests' titles. */
  readonly title: string;
  /** The name inside its config list. */
  readonly name: string;
  /** Why it cannot be tried here. */
  readonly missing?: string;
  /** How its addresses begin, one per family: tells them from those of a client's own fall-back network. */
  readonly addressPrefixes: readonly string[];
  /** The CNI versions that its plugins speak. */
  readonly versions: readonly string[];
  /** Whether its GC finds attachments that no runtime remembers. */
  readonly collectsGarbage: boolean;
  /** Searched in this order; all plugins of the list must be in one of them, and `loopback` for the CRI. */
  readonly pluginDirectories: readonly string[];
  conflist(cniVersion: string): object;
  /** Datastore, pool and whatever else must stand before the first ADD. */
  prepare?(host: Host): Promise<void>;
  /** Every address, endpoint … that it still keeps for an attachment. */
  kept(host: Host): Promise<readonly string[]>;
  /** What the node agent says of the calls that it served; absent where none is meant to serve. */
  served?(host: Host): readonly string[];
}

export const BIN_DIRECTORY = "/opt/cni/bin";
const CONFIG_DIRECTORY = "/etc/cni/net.d";

/** Makes the network usable on the host, at the places that clients hard-wire. */
export async function installNetwork(host: Host, network: NetworkUnderTest, cniVersion = "1.0.0"): Promise<void> {
  for (const directory of network.pluginDirectories) {
    for (const file of readdirSync(directory)) {
      const link = host.view(join(BIN_DIRECTORY, file));
      if (!existsSync(link)) symlinkSync(join(directory, file), link);
    }
  }
  const conflist = JSON.stringify(network.conflist(cniVersion));
  host.writeFile(join(CONFIG_DIRECTORY, `10-${network.name}.conflist`), conflist);
  await network.prepare?.(host);
}

const DEBIAN_PLUGINS = "/usr/lib/cni";

/** Upstream's plugins of 1.9.1, built only if they can be used; without Go, the reason why they are missing. */
export async function upstreamPlugins(): Promise<Built> {
  return hostProblem() === undefined ? await part("cni-plugins") : partIfBuilt("cni-plugins");
}

/** For what every release of upstream's plugins does: 1.9.1, or Debian's 1.1.1 (which does not know CNI 1.1.0). */
export async function anyUpstreamPlugins(): Promise<string> {
  const built = await upstreamPlugins();
  return "path" in built ? built.path : DEBIAN_PLUGINS;
}

const DATA_DIRECTORY = "/var/lib/cni/networks";

/** ptp + host-local + portmap + bandwidth of upstream: proves the harness itself. */
export async function upstreamNetwork(): Promise<NetworkUnderTest> {
  const name = "upstream";
  const plugins = await upstreamPlugins();
  return {
    title: "upstream ptp + host-local",
    name,
    ...("missing" in plugins ? { missing: plugins.missing } : {}),
    addressPrefixes: ["10.77.0.", "fd77::"],
    versions: ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"],
    collectsGarbage: false,
    pluginDirectories: "path" in plugins ? [plugins.path] : [],
    conflist: (cniVersion) => ({
      cniVersion,
      name,
      plugins: [
        {
          type: "ptp",
          ipam: {
            type: "host-local",
            dataDir: DATA_DIRECTORY,
            ranges: [[{ subnet: "10.77.0.0/24" }], [{ subnet: "fd77::/64" }]],
            routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }],
          },
        },
        { type: "portmap", capabilities: { portMappings: true }, snat: true },
        // No rates here: they would win over those of a pod's annotations.
        { type: "bandwidth", capabilities: { bandwidth: true } },
      ],
    }),
    async kept(host) {
      const directory = host.view(join(DATA_DIRECTORY, name));
      if (!existsSync(directory)) return [];
      return readdirSync(directory).filter((file) => file !== "lock" && !file.startsWith("last_reserved_ip."));
    },
  };
}
