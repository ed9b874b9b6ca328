/** How a node finds its address: from the fields of an Installation to the text of NodeAgentConfiguration. */
import type { DeclaredDetection } from "../../model/installation/network.ts";

export function detectionText(detection: DeclaredDetection): string {
  if (detection.kubernetes !== undefined) return "kubernetes-internal-ip";
  if (detection.interface !== undefined) return `interface=${detection.interface}`;
  if (detection.skipInterface !== undefined) return `skip-interface=${detection.skipInterface}`;
  if (detection.canReach !== undefined) return `can-reach=${detection.canReach}`;
  if (detection.cidrs !== undefined) return `cidr=${detection.cidrs.join(",")}`;
  return "first-found";
}
