/** cnitool, the CNI project's own client: real libcni, one call per run, its result cache in /var/lib/cni. */
import type { Finished, Host } from "./host.ts";

export interface CnitoolOptions {
  readonly interfaceName?: string;
  readonly cniArgs?: string;
  /** Capability arguments: `{ portMappings: […], bandwidth: {…} }`. */
  readonly capabilities?: Readonly<Record<string, unknown>>;
}

export type CnitoolCommand = "add" | "check" | "del" | "gc" | "status";

export function runCnitool(
  host: Host,
  program: string,
  [command, network, netns]: readonly [CnitoolCommand, network: string, netns: string],
  options: CnitoolOptions = {},
): Promise<Finished> {
  const environment = {
    CNI_PATH: "/opt/cni/bin",
    NETCONFPATH: "/etc/cni/net.d",
    CNI_IFNAME: options.interfaceName ?? "eth0",
    ...(options.cniArgs === undefined ? {} : { CNI_ARGS: options.cniArgs }),
    ...(options.capabilities === undefined ? {} : { CAP_ARGS: JSON.stringify(options.capabilities) }),
  };
  return host.run([program, command, network, netns], { environment });
}
