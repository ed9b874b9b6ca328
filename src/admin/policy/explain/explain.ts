import { policyRequirement } from "../../../config/installed-network.ts";
import { type Address, formatAddress } from "../../../ip/address.ts";
import type { Node } from "../../../model/node.ts";
import { nodeAgentSettings } from "../../../model/node-agent-configuration.ts";
import { explain, type Verdict } from "../../../policy/judge/explain.ts";
import type { AppliedPolicy, ExplainedSide } from "../../../policy/judge/explain-side.ts";
import type { Packet, PacketRequest } from "../../../policy/judge/packet.ts";
import { publishedAt, publishedBy } from "../../../policy/judge/published-ports.ts";
import { type ReadPolicy, readPolicy } from "../../../policy/read-resources.ts";
import { quoted } from "../../../quote.ts";
import { withDatastoreAndMaybeApi } from "../../datastore/open.ts";
import { nodeOrHostName } from "../../host/node-name.ts";
import { reportUnreadable } from "../../ipam/report-unreadable.ts";
import { EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../../main/command.ts";
import type { Call, Clock, DatastoreAccess, Files, Host } from "../../main/context.ts";
import { withoutReplaced } from "../endpoints-without-container.ts";
import { type LocalNode, readLocalNode } from "../local-enforcement.ts";
import { type ChangedResource, hasPlannedChange, readPlannedChange } from "../what-if/planned-change.ts";
import { followDestination, isHere, isLoopback, masqueradedBy, nodeOfPlace } from "./follow-nat.ts";
import { type NatFacts, readNatFacts, readThisHost, type ThisHost } from "./nat-facts.ts";
import { type PacketShape, packetShape, requestOf, wantedFamily } from "./packet.ts";
import {
  commonFamilies,
  findPeer,
  nodeAddresses,
  type PeerPair,
  type PeerPlace,
  pairsIn,
  placeOf,
  titleOf,
} from "./peer.ts";
import { asIfText, type ExplainedFamily, type ExplainedTarget, explanationText } from "./text.ts";

export async function run(context: DatastoreAccess & Host & Clock, given: Given): Promise<ExitCode> {
  const [from, to] = [requireValue(given, "from"), requireValue(given, "to")];
  const [shape, request] = [packetShape(given), requestOf(given)];
  const plannedIn = await readPlannedChange(context, given);
  return withDatastoreAndMaybeApi(context, given, async (stored, _settings, openApi) => {
    const { store, changes } = await plannedIn(stored);
    const read = await readPolicy(store);
    const { hostEndpoints } = read.resources;
    const endpoints = await withoutReplaced(context, read.resources.endpoints, await nodeOrHostName(context, given));
    const [here, local] = [await readThisHost(context), await readLocalNode(context, given)];
    const thisNode = local && { name: local.name, addresses: here.addresses };
    const known = { endpoints, hostEndpoints, nodes: read.nodes, ...(thisNode === undefined ? {} : { thisNode }) };
    const [source, destination] = [findPeer(from, known), findPeer(to, known)];
    const families = commonFamilies(source, destination, wantedFamily(given));
    const isWorkload = destination.places.every(({ endpoint }) => endpoint !== undefined);
    const facts = isWorkload ? NO_NAT : await readNatFacts(store, openApi);
    const question = { shape, request, read, facts, here, local };
    const pairs = families.flatMap((family) => pairsIn(source, destination, family));
    const explainAll = (asked: Question) => pairs.flatMap((pair) => explainPair(pair, asked));
    const explained = explainAll(question);
    const hasPolicies = read.resources.networkPolicies.length + read.resources.globalNetworkPolicies.length > 0;
    const enforcement =
      hasPolicies || explained.every(({ verdict }) => verdict === "allow")
        ? undefined
        : await enforcementWithoutPolicies(read.resources, context);
    const enforced = enforcement === undefined ? explained : explainAll({ ...question, enforcement });
    const shown = enforced.map((each) => ({ ...each, sides: each.sides.map((side) => withChanges(side, changes)) }));
    const plan = hasPlannedChange(given) ? changes : undefined;
    const packets = shown.map(asJson);
    context.stdout(
      wantsJson(given)
        ? `${JSON.stringify({ ...(plan === undefined ? {} : { asIf: plan }), packets }, undefined, 2)}\n`
        : [
            ...(plan === undefined ? [] : [asIfText(plan, context)]),
            ...shown.map((each) => explanationText(each, context)),
          ].join("\n"),
    );
    return reportUnreadable(context, read.unreadable) || EXIT_OK;
  });
}

/** Says which of the shown policies are not stored, or stored with another content. */
function withChanges(side: ExplainedSide, changes: readonly ChangedResource[]): ExplainedSide {
  const stateOf = ({ kind, namespace, name }: AppliedPolicy) =>
    changes.find((each) => each.kind === kind && each.namespace === namespace && each.name === name)?.change;
  return {
    ...side,
    policies: side.policies.map((policy) => {
      const change = stateOf(policy);
      if (change === undefined) return policy;
      return { ...policy, outcome: `${policy.outcome}; ${change === "created" ? "not stored" : "stored otherwise"}` };
    }),
  };
}

function requireValue({ values }: Given, name: "from" | "to"): string {
  const value = values.get(name);
  const [, host, port] = /^([^:]+):(\d+)$/.exec(value ?? "") ?? [];
  if (host !== undefined) {
    const option = name === "to" ? "port" : "source-port";
    throw new UsageError(
      `"--${name}" is ${quoted(value)}: give the port as an option, --${name} ${host} --${option} ${port}`,
    );
  }
  if (value !== undefined) return value;
  throw new UsageError(
    `"--${name}" is missing: give NAMESPACE/POD, a container, a node, hostendpoint/NAME or an address`,
  );
}

interface Question {
  readonly shape: PacketShape;
  readonly request: PacketRequest | undefined;
  readonly read: ReadPolicy;
  readonly here: ThisHost;
  readonly facts: NatFacts;
  readonly local: LocalNode | undefined;
  readonly enforcement?: Enforcement;
}

const NO_NAT: NatFacts = { services: [], areHostPortsRecorded: false, pools: [] };

/** More backends of a Service than these are judged, but not shown. */
const MOST_TARGETS = 5;

/** One packet; one for each backend if it is sent to a Service. */
function explainPair(pair: PeerPair, question: Question): readonly ExplainedFamily[] {
  const { shape, read, facts, here } = question;
  const from = onThisHost(pair.from, question);
  const isToLoopback = from.endpoint !== undefined && isLoopback(pair.to.address);
  const to = isToLoopback ? pair.to : onThisHost(pair.to, question);
  const packet = shape(from.address, to.address);
  const { endpoints, hostEndpoints } = read.resources;
  const { targets, note } = isToLoopback
    ? { targets: [] }
    : followDestination(packet, to, { from, endpoints, facts, here });
  const sent = { from, to, packet, isToLoopback, ...noteOf(note, ...pair.notes) };
  if (targets.length === 0) {
    const published = publishedNote(sent, question);
    return [explainSent({ ...sent, ...noteOf(note, ...pair.notes, published) }, undefined, question)];
  }
  const all = targets.map(({ address, ...target }) => {
    const place = placeOf(address, { endpoints, hostEndpoints, nodes: read.nodes });
    return explainSent(sent, { ...target, place }, question);
  });
  return all.length > MOST_TARGETS ? mostTelling(all) : all;
}

/** Users give the published port of a container as if it were the container's. */
function publishedNote(sent: Sent, question: Question): string | undefined {
  const { packet, to } = sent;
  const { protocol, destinationPort: port } = packet;
  if (to.endpoint === undefined) return undefined;
  const meant = publishedAt({ protocol, port }, publishedBy(to.endpoint, question.here.hostPorts));
  if (meant === undefined) return undefined;
  const arriving = { ...packet, destinationPort: meant.port };
  const { verdict } = explainSent({ ...sent, packet: arriving }, undefined, question);
  return `${titleOf(to.endpoint)} publishes ${port} as ${meant.port}: packets to port ${port} of the host arrive at its port ${meant.port}, which is ${OUTCOMES[verdict]}`;
}

const OUTCOMES: Readonly<Record<Verdict, string>> = { allow: "allowed", deny: "denied", depends: "not certain" };

/** A few of many backends, those that are denied first. */
function mostTelling(all: readonly ExplainedFamily[]): readonly ExplainedFamily[] {
  const isDenied = ({ verdict }: ExplainedFamily) => verdict !== "allow";
  const denied = all.filter(isDenied);
  const count = `one of ${all.length} backends, of which ${denied.length === 1 ? "1 is" : `${denied.length} are`} denied`;
  const shown = [...denied, ...all.filter((each) => !isDenied(each))].slice(0, MOST_TARGETS);
  return shown.map(({ target, ...rest }) => ({
    ...rest,
    ...(target === undefined ? {} : { target: { ...target, by: `${target.by}; ${count}` } }),
  }));
}

/** The Node of this host may not have all of its addresses. */
function onThisHost(place: PeerPlace, { here, read }: Question): PeerPlace {
  if (place.endpoint !== undefined || place.node !== undefined || !isHere(place.address, here)) return place;
  const isOwn = (node: Node) => nodeAddresses(node).some((address) => isHere(address, here));
  const published = here.hostPorts.map(({ address }) => formatAddress(address));
  const ofContainer = read.resources.endpoints.find(({ spec }) =>
    (spec.ipNetworks ?? []).some((text) => published.includes(text.split("/")[0] ?? "")),
  );
  const node = read.nodes.find(isOwn)?.metadata.name ?? ofContainer?.spec.node;
  return node === undefined ? place : { ...place, node };
}

type Sent = Pick<ExplainedFamily, "from" | "to" | "packet" | "note"> & { readonly isToLoopback: boolean };

function explainSent(
  { isToLoopback, ...sent }: Sent,
  target: ExplainedTarget | undefined,
  { request, read, facts, enforcement, local }: Question,
): ExplainedFamily {
  const { from, to, packet } = sent;
  const arriving = target === undefined ? packet : rewritten(packet, target);
  const place = target?.place ?? to;
  const isRewrittenLater = target?.node !== undefined && target.node !== nodeOfPlace(from);
  const pool = isRewrittenLater ? masqueradedBy(packet, from, to, facts) : masqueradedBy(arriving, from, place, facts);
  const hiding = hidingNode(target);
  const addressOf = (node: string | undefined) => addressOfNode(node, packet, read);
  const leavesAs = addressOf(pool === undefined ? (isRewrittenLater ? undefined : hiding) : nodeOfPlace(from));
  const hidden = addressOf(hiding);
  const via = isRewrittenLater
    ? { node: target.node, ...(hidden === undefined ? {} : { leavesAs: hidden }) }
    : undefined;
  const endOf = ({ endpoint, node, hostEndpoint }: PeerPlace) => ({ workload: endpoint, node, hostEndpoint });
  const { verdict, sides } = explain(
    {
      ...{ packet: arriving, source: endOf(from), destination: endOf(place) },
      settingsOf: (node) => nodeAgentSettings(read.configurations, node),
      ...(request === undefined ? {} : { request }),
      ...(leavesAs === undefined ? {} : { leavesAs }),
      ...(via === undefined ? {} : { via }),
      ...(enforcement === undefined ? {} : { isUnenforcedAt: enforcement.isUnenforcedAt }),
      isToLoopback,
    },
    read.resources,
  );
  const unenforcedNote = sides.some(({ isUnenforced }) => isUnenforced === true) ? enforcement?.note : undefined;
  const isJudgedHere = sides.some(
    ({ isUnenforced, hostEndpoint, direction }) =>
      isUnenforced !== true &&
      local?.name === (hostEndpoint?.node ?? (direction === "egress" ? from : place).endpoint?.spec.node),
  );
  const localNote = isJudgedHere ? local?.unenforced : undefined;
  return {
    ...{ ...sent, request, verdict, sides, ...noteOf(sent.note, hidingNote(target), unenforcedNote, localNote) },
    ...(target === undefined ? {} : { target }),
    ...(pool === undefined ? {} : { masqueradedBy: pool }),
  };
}

/** The node that sends the packet on with its own address, if there is one. */
function hidingNode(target: ExplainedTarget | undefined): string | undefined {
  if (target?.hidesSource === undefined) return undefined;
  const next = nodeOfPlace(target.place);
  return next === undefined || next === target.node ? undefined : target.node;
}

function hidingNote(target: ExplainedTarget | undefined): string | undefined {
  const node = hidingNode(target);
  if (node === undefined || target === undefined) return undefined;
  return `node ${quoted(node)} sends it to node ${quoted(nodeOfPlace(target.place) ?? "")} with its own address instead of the client's, as kube-proxy does (externalTrafficPolicy Cluster)`;
}

function noteOf(...notes: readonly (string | undefined)[]): Pick<ExplainedFamily, "note"> {
  const given = notes.filter((note) => note !== undefined);
  return given.length === 0 ? {} : { note: given.join("; ") };
}

function rewritten(packet: Packet, { place, port }: ExplainedTarget): Packet {
  const { destinationPort: _, ...rest } = packet;
  const to = port === undefined ? {} : { destinationPort: port };
  return { ...rest, ...to, destination: place.address, beforeNat: packet };
}

function addressOfNode(name: string | undefined, { source }: Packet, { nodes }: ReadPolicy): Address | undefined {
  const node = nodes.find(({ metadata }) => metadata.name === name);
  return node && nodeAddresses(node).find(({ family }) => family === source.family);
}

/** What this host enforces without any policy. */
interface Enforcement {
  /** Not even profiles. */
  readonly isUnenforcedAt: (node: string) => boolean;
  readonly note: string;
}

/** Without any policy only a node with a host endpoint, or whose network config wants it, has a policy table. */
async function enforcementWithoutPolicies(
  { hostEndpoints }: ReadPolicy["resources"],
  context: Call & Files,
): Promise<Enforcement | undefined> {
  const { isPolicyRequired, problem } = await policyRequirement(context);
  if (isPolicyRequired) return undefined;
  return {
    isUnenforcedAt: (node) => !hostEndpoints.some(({ spec }) => spec.node === node),
    note: [NOTHING_ENFORCED, ...(problem === undefined ? [] : [problem])].join("; "),
  };
}

const NOTHING_ENFORCED =
  'there is no policy, so that nothing is enforced there; only a node with a host endpoint or with "policy.type" in its network config would deny it';

function asJson(explained: ExplainedFamily): object {
  const { packet, request, from, to, target, masqueradedBy: pool, verdict, note, sides } = explained;
  const place = ({ address, endpoint, node, hostEndpoint, network }: PeerPlace) => ({
    address: formatAddress(address),
    ...(network === undefined ? {} : { network }),
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
    target: target && { ...place(target.place), port: target.port, by: target.by },
    masqueradedBy: pool,
    packet: { ipVersion: destination.family, protocol, sourcePort, destinationPort, icmp },
    request,
    sides,
  };
}
