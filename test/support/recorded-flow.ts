/** What a collector records of a packet in a random cluster. */
import { nameOfWorkload, ownLabels } from "../../src/flows/flow-packet.ts";
import type { FlowEnd, FlowRecord } from "../../src/flows/flow-record.ts";
import { formatAddress, isSameAddress } from "../../src/ip/address.ts";
import { parseInterfaceAddress } from "../../src/ip/prefix.ts";
import { inheritedContainerLabels } from "../../src/model/container-labels.ts";
import { isFinished } from "../../src/model/finished-pods.ts";
import { type NodeAgentConfiguration, nodeAgentSettings } from "../../src/model/node-agent-configuration.ts";
import type { WorkloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { explain } from "../../src/policy/judge/explain.ts";
import type { PacketEnd } from "../../src/policy/judge/host-passages.ts";
import type { Packet } from "../../src/policy/judge/packet.ts";
import type { PolicyResources } from "../../src/policy/judge/resources.ts";

/** Who has the address, as the collector names it. */
function recordedEnd(address: Packet["source"], port: number | undefined, resources: PolicyResources) {
  const text = formatAddress(address);
  const more = { address: text, ...(port === undefined ? {} : { port }) };
  const workload = resources.endpoints.find((each) => !isFinished(each) && hasAddress(each, address));
  if (workload !== undefined) {
    const all = { ...workload.metadata.labels, ...inheritedContainerLabels(workload, resources.containerLabels) };
    const [labels, node] = [ownLabels(all), workload.spec.node];
    const named = { ...nameOfWorkload(workload), ...(labels === undefined ? {} : { labels }) };
    const end = { ...named, ...more, ...(node === undefined ? {} : { node }) };
    return { end: end as FlowEnd, place: { workload } satisfies PacketEnd };
  }
  const host = resources.hostEndpoints.find(({ spec }) => spec.expectedIPs?.includes(text));
  if (host?.spec.node === undefined) return { end: { kind: "outside", ...more } as FlowEnd, place: {} };
  return { end: { kind: "host", name: host.spec.node, ...more } as FlowEnd, place: { node: host.spec.node } };
}

function hasAddress({ spec }: WorkloadEndpoint, address: Packet["source"]): boolean {
  return (spec.ipNetworks ?? []).some((text) => {
    const own = parseInterfaceAddress(text)?.address;
    return own !== undefined && isSameAddress(own, address);
  });
}

/** As the node of the source records it, with the verdict of the judge. */
export function recordedFlow(packet: Packet, resources: PolicyResources, configuration: NodeAgentConfiguration) {
  const { source: from, destination: to, protocol, sourcePort, destinationPort, icmp } = packet;
  const [source, destination] = [recordedEnd(from, sourcePort, resources), recordedEnd(to, destinationPort, resources)];
  const settingsOf = (node: string) => nodeAgentSettings([configuration], node);
  const ends = { source: source.place, destination: destination.place };
  const said = explain({ packet, ...ends, settingsOf }, resources);
  const flow: FlowRecord = {
    ...{ id: "1", node: source.end.node ?? "here", family: from.family, protocol },
    ...(icmp === undefined ? {} : { icmp }),
    ...{ source: source.end, destination: destination.end, direction: "both", decisions: [] },
    verdict: said.verdict === "deny" ? "denied" : "allowed",
    ...{ state: "ended", start: 1, end: 2, sent: { packets: 1, bytes: 1 }, received: { packets: 1, bytes: 1 } },
  };
  return { flow, said, settingsOf, ...ends };
}
