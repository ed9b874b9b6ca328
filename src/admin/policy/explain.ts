import type { Family } from "../../ip/address.ts";
import { formatAddress } from "../../ip/address.ts";
import { nodeAgentSettings } from "../../model/node-agent-configuration.ts";
import { explain } from "../../policy/judge/explain.ts";
import type { PacketRequest } from "../../policy/judge/packet.ts";
import { type ReadPolicy, readPolicy } from "../../policy/read-resources.ts";
import { type Command, EXIT_OK, type Given, UsageError, wantsJson } from "../command.ts";
import { withDatastore } from "../datastore/open.ts";
import { reportUnreadable } from "../ipam/report-unreadable.ts";
import { PACKET_OPTIONS, type PacketShape, packetShape, requestOf, wantedFamily } from "./explain-packet.ts";
import { commonFamilies, findPeer, type Peer, type PeerPlace, placeIn, titleOf } from "./explain-peer.ts";
import { type ExplainedFamily, explanationText } from "./explain-text.ts";

export const policyExplain: Command = {
  kind: "command",
  name: "explain",
  summary: "Show which rule of which policy allows or denies a connection, and why",
  description: [
    "Evaluates the policies in the datastore for the first packet of a connection: the egress policies of its source, then the ingress",
    "policies of its destination. Replies and later packets of an allowed connection always pass.",
    "On the way, the host endpoints of the nodes are evaluated too. A connection from or to a node passes the interface of hostendpoint/NAME, if",
    "that is given, otherwise of the host endpoint that expects the address; otherwise all host endpoints of the node are shown.",
    "With --method, --path or --principal it also evaluates the policies for an HTTP request over the connection, as the sidecar of its",
    "destination does. Without a sidecar, rules with http match nothing.",
    "An address that is not that of a workload or a node is outside the network: no policy applies on its side.",
    "What the kernel of a node holds is not read: it follows the datastore within a second while the node agent runs.",
  ].join("\n"),
  options: [
    {
      name: "from",
      value: "WORKLOAD|HOST|ADDRESS",
      summary: "Source: NAMESPACE/POD, a container, hostendpoint/NAME or an address",
    },
    {
      name: "to",
      value: "WORKLOAD|HOST|ADDRESS",
      summary: "Destination: NAMESPACE/POD, a container, hostendpoint/NAME or an address",
    },
    ...PACKET_OPTIONS,
  ],
  needsDatastore: true,
  examples: [
    {
      command: "policy explain --from default/client --to default/web --port 80",
      does: "Why does the connection work, or not?",
    },
    {
      command: "policy explain --from 192.0.2.7 --to default/dns --protocol udp --port 53",
      does: "The same for a client outside the network",
    },
    { command: "policy explain --from default/client --to default/web --protocol icmp", does: "May it be pinged?" },
    {
      command: "policy explain --from 198.51.100.7 --to hostendpoint/node-1-eth0 --port 22",
      does: "May a client connect to a host itself?",
    },
    {
      command: "policy explain --from default/client --to default/web --port 80 --method POST --path /api/orders",
      does: "Does the sidecar of the destination allow the request?",
    },
    { command: "policy explain --from default/client --to 10.0.0.5 --port 443 -o json", does: "As JSON for a script" },
  ],
  async run(context, given) {
    const [from, to] = [requireValue(given, "from"), requireValue(given, "to")];
    const [shape, request] = [packetShape(given), requestOf(given)];
    return withDatastore(context, given, async (store) => {
      const read = await readPolicy(store);
      const { endpoints, hostEndpoints } = read.resources;
      const known = { endpoints, hostEndpoints, nodes: read.nodes };
      const [source, destination] = [findPeer(from, known), findPeer(to, known)];
      const families = commonFamilies(source, destination, wantedFamily(given));
      const explained = families.map((family) =>
        noted(explainFamily(family, { source, destination, shape, request, read }), read),
      );
      context.stdout(
        wantsJson(given)
          ? `${JSON.stringify({ packets: explained.map(asJson) }, undefined, 2)}\n`
          : explained.map((each) => explanationText(each, context)).join("\n"),
      );
      return reportUnreadable(context, read.unreadable) || EXIT_OK;
    });
  },
};

function requireValue({ values }: Given, name: "from" | "to"): string {
  const value = values.get(name);
  if (value !== undefined) return value;
  throw new UsageError(`"--${name}" is missing: give NAMESPACE/POD, a container, hostendpoint/NAME or an address`);
}

interface Question {
  readonly source: Peer;
  readonly destination: Peer;
  readonly shape: PacketShape;
  readonly request: PacketRequest | undefined;
  readonly read: ReadPolicy;
}

function explainFamily(family: Family, question: Question): ExplainedFamily {
  const { source, destination, shape, request, read } = question;
  const [from, to] = [placeIn(source, family), placeIn(destination, family)];
  const packet = shape(from.address, to.address);
  const endOf = ({ endpoint, node, hostEndpoint }: PeerPlace) => ({ workload: endpoint, node, hostEndpoint });
  const settingsOf = (node: string) => nodeAgentSettings(read.configurations, node);
  const explained = {
    ...{ packet, source: endOf(from), destination: endOf(to), settingsOf },
    ...(request === undefined ? {} : { request }),
  };
  const { verdict, sides } = explain(explained, read.resources);
  return { packet, request, from, to, verdict, sides };
}

/** Without any policy there is no policy table, so even what no profile allows passes. */
function noted(explained: ExplainedFamily, { resources }: ReadPolicy): ExplainedFamily {
  const nodes = [explained.from, explained.to].map(({ endpoint, node }) => endpoint?.spec.node ?? node);
  const isEnforced =
    resources.networkPolicies.length + resources.globalNetworkPolicies.length > 0 ||
    resources.hostEndpoints.some(({ spec }) => nodes.includes(spec.node));
  if (isEnforced || explained.verdict === "allow") return explained;
  return { ...explained, note: NOTHING_ENFORCED };
}

const NOTHING_ENFORCED =
  'there is no policy: nodes without "policy.type" in their network config enforce nothing, and let it pass';

function asJson({ packet, request, from, to, verdict, note, sides }: ExplainedFamily): object {
  const place = ({ address, endpoint, node, hostEndpoint }: PeerPlace) => ({
    address: formatAddress(address),
    ...(endpoint === undefined ? {} : { workload: titleOf(endpoint), node: endpoint.spec.node }),
    ...(node === undefined ? {} : { node }),
    ...(hostEndpoint === undefined ? {} : { hostEndpoint: hostEndpoint.metadata.name }),
  });
  const { protocol, sourcePort, destinationPort, icmp, destination } = packet;
  return {
    verdict,
    note,
    from: place(from),
    to: place(to),
    packet: { ipVersion: destination.family, protocol, sourcePort, destinationPort, icmp },
    request,
    sides,
  };
}
