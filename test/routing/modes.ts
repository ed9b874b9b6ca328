/** The ways in which the pods of the site may reach each other, as an operator sets them. */
import { resource } from "./resource.ts";
import type { RoutedPod, RoutedSite } from "./routed-site.ts";
import { POOLS } from "./routed-site.ts";

export interface Mode {
  readonly vxlan: "Always" | "CrossSubnet" | "Never";
  readonly natOutgoing?: boolean;
  readonly bgp: "Enabled" | "Disabled";
  /** Of all nodes; a route reflector or router otherwise. */
  readonly mesh?: boolean;
}

export const MODES = {
  vxlanAlways: { vxlan: "Always", bgp: "Disabled" },
  /** BGP is enabled, but not needed. */
  vxlanCrossSubnet: { vxlan: "CrossSubnet", bgp: "Enabled" },
  bgpMesh: { vxlan: "Never", bgp: "Enabled" },
  /** Peers must be added. */
  bgpPeers: { vxlan: "Never", bgp: "Enabled", mesh: false },
  none: { vxlan: "Never", bgp: "Disabled" },
} as const satisfies Readonly<Record<string, Mode>>;

export async function setMode(site: RoutedSite, { vxlan, natOutgoing = false, bgp, mesh = true }: Mode): Promise<void> {
  await site.apply(
    resource("NodeAgentConfiguration", "default", { bgp }),
    resource("BGPConfiguration", "default", { nodeToNodeMeshEnabled: mesh, asNumber: 64512 }),
  );
  const patch = JSON.stringify({ spec: { vxlanMode: vxlan, natOutgoing } });
  for (const pool of Object.keys(POOLS)) await site.admin(`patch ippool ${pool} -p ${patch}`);
}

/** As somebody who runs the router without BGP must do if pools are not encapsulated. */
export async function routePodsByHand({ network }: RoutedSite, pods: readonly RoutedPod[]): Promise<AsyncDisposable> {
  const commands = (verb: "replace" | "del") =>
    pods.map(
      ({ addresses, node }) =>
        `ip route ${verb} ${addresses[0]} via ${node.addresses[0]}; ip -6 route ${verb} ${addresses[1]} via ${node.addresses[1]}`,
    );
  await network.router.must(["sh", "-ec", commands("replace").join("\n")]);
  return {
    [Symbol.asyncDispose]: async () => void (await network.router.run(["sh", "-c", commands("del").join("\n")])),
  };
}
