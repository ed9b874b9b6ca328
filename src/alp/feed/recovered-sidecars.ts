/**
 * The sidecars that reported to the previous agent, as the kernel's set says. An agent that is replaced does not interrupt:
 * their interfaces stay until they have had the time to report again.
 */
import { POLICY_TABLE } from "../../firewall/policy-table.ts";
import { closeNetlinkSocket, type SocketOpener } from "../../linux/netlink-socket.ts";
import { listElements } from "../../linux/nftables/read.ts";
import type { ReportingSidecars } from "../../policy/compile/sidecar-interfaces.ts";
import type { LocalEndpoint } from "../../policy/compile/workload-endpoints.ts";
import { SIDECARS } from "../../policy/render/base-chains.ts";

/** None if there is no such set. */
export function readSidecarInterfaces(kernel: SocketOpener): ReadonlySet<string> {
  const socket = kernel.openSocket("netfilter");
  try {
    return new Set(listElements(socket, POLICY_TABLE, SIDECARS).map(({ key }) => nameIn(key)));
  } finally {
    closeNetlinkSocket(socket);
  }
}

/** The kernel fills names with zeros. */
function nameIn(key: Uint8Array): string {
  return new TextDecoder().decode(key).replace(/\0+$/, "");
}

export class RecoveredSidecars {
  private readonly interfaces: Set<string>;

  /** `pods`: the UIDs of those that had a volume of the previous agent. */
  constructor(
    interfaces: ReadonlySet<string>,
    private readonly pods: ReadonlySet<string>,
  ) {
    this.interfaces = new Set(interfaces);
  }

  /** `endpoints`: those whose sidecars have reported to this agent. If one of these is lost, its interface goes at once. */
  with(endpoints: ReadonlySet<string>, local: ReadonlyMap<string, LocalEndpoint>): ReportingSidecars {
    for (const key of endpoints) this.interfaces.delete(local.get(key)?.interfaceName ?? "");
    return { endpoints, recovered: { interfaces: new Set(this.interfaces), pods: this.pods } };
  }

  /** Their time is over. */
  forget(): void {
    this.interfaces.clear();
  }
}
