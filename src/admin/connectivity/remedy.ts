/** What to do about a failed check. Pure. */
import { identity } from "../../identity.ts";
import type { Check } from "./checks.ts";
import type { ProbeResult } from "./probe.ts";

const { adminTool, nodeAgent } = identity;

export function remedyFor(check: Check, result: ProbeResult | undefined): string {
  const { title, from, to, phase } = check;
  if (result === undefined) return `look at the pod and its node: kubectl describe node ${from}`;
  if (phase !== "connections") return policyRemedy(check);
  if (result.kind === "ok") return "look for a masquerade rule of another program on the nodes: nft list ruleset";
  if (title === "pod to pod" && from !== to && result.datagrams !== undefined) {
    return causeBetween(check, result.datagrams);
  }
  if (result.kind === "incomplete") {
    return `small packets pass and large ones are lost: compare the MTU of pods and of the network between the nodes; "${adminTool} get nodeagentconfiguration default -o yaml" shows a fixed one`;
  }
  switch (title) {
    case "pod to pod":
    case "host to pod":
      return from === to ? onNode(from) : betweenNodes(from, to);
    case "pod to Service":
    case "pod to API server":
      return `if pods reach each other, look at kube-proxy on node ${from}: is it running, and does it have this Service?`;
    case "pod to host port":
      return `look at the host port rules of node ${to}: "${adminTool} node check"; host ports can be disabled in the Installation`;
    case "pod to DNS":
      return "look at the pods of the cluster DNS: kubectl --namespace kube-system get pods --selector k8s-app=kube-dns";
    default:
      return `look for a firewall on node ${to} that drops packets of pods: "${adminTool} node check" there`;
  }
}

function policyRemedy({ expected, from, to }: Check): string {
  const nodes = from === to ? `node ${from}` : `nodes ${from} and ${to}`;
  return expected === "closed"
    ? `look at the log of ${nodeAgent} on ${nodes}: does it enforce policies ("policy.type" of the network config)?`
    : `ask what denies it, on ${nodes}: "${adminTool} policy trace"; a GlobalNetworkPolicy may apply to all pods`;
}

function onNode(node: string): string {
  return `run "${adminTool} node check" on node ${node}; a GlobalNetworkPolicy may apply to all pods: "${adminTool} get globalnetworkpolicies"`;
}

/** Datagrams that need nothing from network cards were sent to the place that TCP does not reach. */
function causeBetween(
  { from, to }: Check,
  { largest, mtu }: { readonly largest: number; readonly mtu: number },
): string {
  const found = `"${adminTool} node status" on ${from} and ${to} shows what the node agents found out`;
  if (largest === 0) {
    return `nothing passes, not even datagrams: ${betweenNodes(from, to)}; if the pools use VXLAN, the network may drop its port, as vSphere does with 4789: set another vxlanPort in NodeAgentConfiguration "default"`;
  }
  if (largest < mtu) {
    return `packets of more than ${largest} bytes are lost, although the MTU is ${mtu}: set "mtu": ${largest} in the network config; ${found}`;
  }
  return `datagrams of all sizes pass, and only TCP is lost: the network card of ${from} or ${to}, or that of the hypervisor, damages checksums inside of VXLAN: set vxlanChecksumOffload to Off in NodeAgentConfiguration "default", or "node.${from}" and "node.${to}"; ${found}`;
}

function betweenNodes(from: string, to: string): string {
  return `run "${adminTool} node status" and "${adminTool} node check" on ${from} and ${to}; a firewall between them must let pass UDP port 4789, or vxlanPort (VXLAN), protocol 4 (IPIP) or TCP port 179 (BGP), whichever the pools use`;
}
