/**
 * The interfaces that were in the kernel's set of sidecars when this agent began. An agent that is replaced does not
 * interrupt: they stay until their sidecars have had the time to report again.
 */
import { POLICY_TABLE } from "../../firewall/policy-table.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { listElements } from "../../linux/nftables/read.ts";
import type { ReportingSidecars } from "../../policy/compile/sidecar-interfaces.ts";
import type { LocalEndpoint } from "../../policy/compile/workload-endpoints.ts";
import { SIDECARS } from "../../policy/render/base-chains.ts";

/** None if there is no such set. */
export function readSidecarInterfaces(socket: NetlinkSocket): readonly string[] {
  return listElements(socket, POLICY_TABLE, SIDECARS).map(({ key }) =>
    new TextDecoder().decode(key).replace(/\0+$/, ""),
  );
}

export class FormerSidecars {
  private readonly interfaces: Set<string>;

  constructor(interfaces: readonly string[]) {
    this.interfaces = new Set(interfaces);
  }

  /** `endpoints`: those whose sidecars have reported to this agent. If one of these is lost, its interface goes at once. */
  with(endpoints: ReadonlySet<string>, local: ReadonlyMap<string, LocalEndpoint>): ReportingSidecars {
    for (const key of endpoints) this.interfaces.delete(local.get(key)?.interfaceName ?? "");
    return { endpoints, formerInterfaces: new Set(this.interfaces) };
  }

  /** Their time is over. */
  forget(): void {
    this.interfaces.clear();
  }
}
