/**
 * A network in the client tests: a config list, its plugins, and how to list what it
 * still has recorded. The same tests run for every network.
 */
import { existsSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { type Built, part, partIfBuilt } from "../parts/build.ts";
import { type Host, hostProblem } from "./host.ts";

export interface NetworkUnderTest {
  /** Shown in the titles of tests. */
  readonly title: string;
  /** The name in its config list. */
  readonly name: string;
  /** Why it cannot be tested here. */
  readonly missing?: string;
  /** The beginnings of its addresses, one per family: a client's own fall-back network has others. */
  readonly addressPrefixes: readonly string[];
  /** The CNI versions that its plugins support. */
  readonly versions: readonly string[];
  /** Whether its GC finds attachments that no runtime lists. */
  readonly collectsGarbage: boolean;
  /** Searched in this order; all plugins of the list must be in one of them, and `loopback` for the CRI. */
  readonly pluginDirectories: readonly string[];
  conflist(cniVersion: string): object;
  /** Creates datastore, pool and everything else that the first ADD needs. */
  prepare?(host: Host): Promise<void>;
  /** Every address, endpoint … that it still has for an attachment. */
  kept(host: Host): Promise<readonly string[]>;
  /** The node agent's log of the calls that it served; absent if no agent runs. */
  served?(host: Host): readonly string[];
}

export const BIN_DIRECTORY = "/opt/cni/bin";
const CONFIG_DIRECTORY = "/etc/cni/net.d";

/** Installs the network on the host, at the paths that clients hard-code. */
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

/** For tests that any release of upstream's plugins passes: 1.9.1, or Debian's 1.1.1 (which does not support CNI 1.1.0). */
export async function anyUpstreamPlugins(): Promise<string> {
  const built = await upstreamPlugins();
  return "path" in built ? built.path : DEBIAN_PLUGINS;
}

const DATA_DIRECTORY = "/var/lib/cni/networks";

/** Upstream's ptp + host-local + portmap + bandwidth: validates the tests themselves. */
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
        // No rates here: they would override those of a pod's annotations.
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
