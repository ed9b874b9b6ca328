/**
 * A ClusterNetworkPolicy of the orchestrator -> a GlobalNetworkPolicy of this product, in a tier before or after all others. Pure.
 *
 *   Admin      tier kube-admin      its priority is the order
 *   Baseline   tier kube-baseline
 *
 * What cannot be carried out fails closed, as the API says: such an Accept matches nothing, such a Deny or Pass denies
 * everything in its direction. All fields are read as they come, as in `orchestrator-policy.ts`.
 */
import { API_VERSION, identity } from "../identity.ts";
import { quoted } from "../quote.ts";
import { ADMIN_TIER, BASELINE_TIER } from "./built-in-tiers.ts";
import { derivedUid } from "./derived-uid.ts";
import type { GlobalNetworkPolicy } from "./global-network-policy.ts";
import type { ResourceName } from "./keys.ts";
import { IS_NODE, OF_NODE } from "./node-members.ts";
import { type Fields, fieldsOf, IS_POD, isGiven, joined, listIn, networkOf, reasonOf } from "./orchestrator-fields.ts";
import { NOT_CONVERTED_ANNOTATION, type OrchestratorPolicy } from "./orchestrator-policy.ts";
import { convertPorts, type ProtocolPorts } from "./orchestrator-ports.ts";
import { convertLabelSelector, Unconvertible } from "./orchestrator-selector.ts";
import type { EntityRule, PolicyRule } from "./policy-rule.ts";
import { isObject } from "./shape.ts";

/** What precedes the name of the orchestrator's policy in ours. The tier is not part of it: it may change. */
export const CLUSTER_POLICY = "kcnp.";

const TIERS: Readonly<Record<string, string>> = { Admin: ADMIN_TIER, Baseline: BASELINE_TIER };
const ACTIONS: Readonly<Record<string, PolicyRule["action"]>> = { Accept: "Allow", Deny: "Deny", Pass: "Pass" };
/** A container port has one of these, and its name does not say which. */
const PROTOCOLS_OF_NAMES = ["TCP", "UDP", "SCTP"] as const;

type Direction = "ingress" | "egress";

/** The name that its author knows; `undefined` for the name of another policy. */
export function clusterPolicyName(name: string): string | undefined {
  return name.startsWith(CLUSTER_POLICY) ? name.slice(CLUSTER_POLICY.length) : undefined;
}

/** A policy as its author calls it. */
export function authoredPolicy({ kind, metadata }: { readonly kind: string; readonly metadata: ResourceName }) {
  const { name, namespace } = metadata;
  const ofCluster = kind === "GlobalNetworkPolicy" ? clusterPolicyName(name) : undefined;
  if (ofCluster !== undefined) return { kind: "ClusterNetworkPolicy", name: ofCluster };
  return { kind, name, ...(namespace === undefined ? {} : { namespace }) };
}

export function convertClusterPolicy({ metadata, spec: given }: OrchestratorPolicy): GlobalNetworkPolicy {
  const { name, uid, creationTimestamp } = metadata;
  const spec = isObject(given) ? given : {};
  const problems: string[] = [];
  const scope = scopeOf(spec, problems);
  const [ingress, egress] = (["ingress", "egress"] as const).map((direction) => {
    const rules = rulesIn(spec, direction, problems);
    // Of a policy that is about unknown pods, or at an unknown place, only what denies can be carried out.
    return scope.isKnown ? rules : rules.filter(({ action }) => action === "Deny");
  });
  const types = [...typeOf(spec, "Ingress"), ...typeOf(spec, "Egress")];
  return {
    apiVersion: API_VERSION,
    kind: "GlobalNetworkPolicy",
    metadata: {
      name: `${CLUSTER_POLICY}${name}`,
      ...(uid === undefined ? {} : { uid: derivedUid(uid) }),
      ...(typeof creationTimestamp === "string" ? { creationTimestamp } : {}),
      ...(problems.length === 0 ? {} : { annotations: { [NOT_CONVERTED_ANNOTATION]: problems.join("; ") } }),
    },
    spec: {
      ...scope.spec,
      types,
      ...(types.includes("Ingress") ? { ingress } : {}),
      ...(types.includes("Egress") ? { egress } : {}),
      ...{ doNotTrack: false, preDNAT: false, applyOnForward: false },
    },
  };
}

/** A policy without rules of a direction does not concern it. One without any is of a tier that passes everything. */
function typeOf(spec: Fields, type: "Ingress" | "Egress"): readonly ("Ingress" | "Egress")[] {
  const rules = spec[type === "Ingress" ? "ingress" : "egress"];
  return Array.isArray(rules) && rules.length > 0 ? [type] : [];
}

interface Scope {
  readonly spec: Pick<GlobalNetworkPolicy["spec"], "tier" | "order" | "selector" | "namespaceSelector">;
  /** Its tier, priority and subject could be converted. */
  readonly isKnown: boolean;
}

/** If it is unknown whom the policy selects, it selects all pods; at an unknown place it is evaluated first. */
function scopeOf({ tier, priority, subject, ingress: _, egress: __, ...others }: Fields, problems: string[]): Scope {
  const before = problems.length;
  for (const field of Object.keys(others)) problems.push(`${field}: is not known, so that only its Deny rules count`);
  const known = typeof tier === "string" ? TIERS[tier] : undefined;
  if (known === undefined) problems.push(`tier: ${quoted(tier)} is not known, so that only its Deny rules count`);
  const isOrder = typeof priority === "number" && Number.isInteger(priority) && priority >= 0;
  if (!isOrder) problems.push(`priority: ${quoted(priority)} is not a priority, so that only its Deny rules count`);
  const selected = selectedBy(subject, problems);
  return {
    spec: { tier: known ?? ADMIN_TIER, order: isOrder ? priority : 0, ...selected },
    isKnown: problems.length === before,
  };
}

function selectedBy(subject: unknown, problems: string[]): Pick<EntityRule, "selector" | "namespaceSelector"> {
  try {
    return convertPods(fieldsOf(subject, "the subject", ["namespaces", "pods"]));
  } catch (failure) {
    problems.push(`subject: ${reasonOf(failure)}, so that its Deny rules are about all pods, and others about none`);
    return { selector: IS_POD };
  }
}

function rulesIn(spec: Fields, direction: Direction, problems: string[]): PolicyRule[] {
  const rules = Array.isArray(spec[direction]) ? spec[direction] : [];
  return rules.flatMap((rule: unknown, index) => {
    const note = (problem: string) => problems.push(`${direction}[${index}]: ${problem}`);
    try {
      return convertRule(rule, direction, note);
    } catch (failure) {
      const isAccept = isObject(rule) && rule["action"] === "Accept";
      note(`${reasonOf(failure)}, so that it ${isAccept ? "allows nothing" : "denies everything"}`);
      return isAccept ? [] : [{ action: "Deny" as const }];
    }
  });
}

/** One rule for each protocol and peer: those of a list are alternatives. */
function convertRule(given: unknown, direction: Direction, note: (problem: string) => void): readonly PolicyRule[] {
  const peersField = direction === "ingress" ? "from" : "to";
  const rule = fieldsOf(given, "the rule", ["name", "action", "protocols", peersField]);
  const action = typeof rule["action"] === "string" ? ACTIONS[rule["action"]] : undefined;
  if (action === undefined) throw new Unconvertible(`the action ${quoted(rule["action"])} is not known`);
  const givenPeers = listIn(rule, peersField);
  if (givenPeers.length === 0) throw new Unconvertible(`"${peersField}" is empty`);
  const known = direction === "ingress" ? INGRESS_PEERS : EGRESS_PEERS;
  const peers = givenPeers
    .map((peer) => fieldsOf(peer, "a peer", known))
    .flatMap((peer) => {
      if (!isGiven(peer["domainNames"]) || action !== "Allow") return [convertPeer(peer)];
      note("domainNames is not supported, so that this peer allows nothing");
      return [];
    });
  const metadata = metadataOf(rule);
  const protocols = listIn(rule, "protocols");
  if (protocols.some(isNamedPort) && givenPeers.some((peer) => !isOfPods(peer)))
    throw new Unconvertible("only pods have ports with a destinationNamedPort");
  return convertProtocols(protocols).flatMap(({ protocol, ports }) =>
    peers.map((peer): PolicyRule => {
      const withPorts = ports.length === 0 ? {} : { ports: [...ports] };
      const destination = direction === "ingress" ? withPorts : { ...peer, ...withPorts };
      return {
        action,
        ...(protocol === undefined ? {} : { protocol }),
        ...(direction === "ingress" ? { source: peer } : {}),
        ...(Object.keys(destination).length === 0 ? {} : { destination }),
        ...metadata,
      };
    }),
  );
}

/** The annotation of a rule with the name that its author gave it. */
const RULE_NAME = `${identity.labelPrefix}rule`;

function metadataOf({ name }: Fields): Pick<PolicyRule, "metadata"> {
  return typeof name === "string" && name !== "" ? { metadata: { annotations: { [RULE_NAME]: name } } } : {};
}

function isNamedPort(protocol: unknown): boolean {
  return isObject(protocol) && isGiven(protocol["destinationNamedPort"]);
}

function isOfPods(peer: unknown): boolean {
  return isObject(peer) && INGRESS_PEERS.some((field) => isGiven(peer[field]));
}

const INGRESS_PEERS = ["namespaces", "pods"] as const;
const EGRESS_PEERS = [...INGRESS_PEERS, "nodes", "networks", "domainNames"] as const;

function convertPeer(peer: Fields): EntityRule {
  const present = Object.keys(peer).filter((field) => isGiven(peer[field]));
  if (present.length !== 1) throw new Unconvertible(`a peer has ${present.length} fields instead of one`);
  if (isGiven(peer["nodes"])) return { selector: joined([IS_NODE, ...convertLabelSelector(peer["nodes"], OF_NODE)]) };
  if (isGiven(peer["domainNames"])) throw new Unconvertible("domainNames is not supported");
  if (!isGiven(peer["networks"])) return convertPods(peer);
  const nets = listIn(peer, "networks").map(networkOf);
  // Without a network there is no criterion, and the rule would match everything.
  if (nets.length === 0) throw new Unconvertible("networks is empty");
  return { nets };
}

/** Of a subject or a peer: exactly one of both. */
function convertPods({ namespaces, pods }: Fields): Required<Pick<EntityRule, "selector" | "namespaceSelector">> {
  if (isGiven(namespaces) === isGiven(pods)) throw new Unconvertible("it needs either namespaces or pods");
  if (isGiven(namespaces)) return { selector: IS_POD, namespaceSelector: namespacesOf(namespaces) };
  const { podSelector, namespaceSelector } = fieldsOf(pods, "pods", ["podSelector", "namespaceSelector"]);
  const selector = joined([IS_POD, ...convertLabelSelector(podSelector)]);
  // Unlike the other one it is optional.
  return { selector, namespaceSelector: namespacesOf(namespaceSelector ?? {}) };
}

function namespacesOf(selector: unknown): string {
  const terms = convertLabelSelector(selector);
  return terms.length === 0 ? "all()" : joined(terms);
}

/** Without any: everything. */
function convertProtocols(given: readonly unknown[]): readonly ProtocolPorts[] {
  const ports = given.flatMap((each): readonly OrchestratorPort[] => {
    const [[kind, value] = [], ...others] = Object.entries(
      fieldsOf(each, "a protocol", ["tcp", "udp", "sctp", "destinationNamedPort"]),
    ).filter(([, member]) => isGiven(member));
    if (kind === undefined || others.length > 0) throw new Unconvertible("a protocol needs exactly one field");
    if (kind === "destinationNamedPort")
      return PROTOCOLS_OF_NAMES.map((protocol) => ({ protocol, port: nameOf(value) }));
    const { destinationPort } = fieldsOf(value, kind, ["destinationPort"]);
    return [{ protocol: kind.toUpperCase(), ...(isGiven(destinationPort) ? rangeOf(destinationPort) : {}) }];
  });
  return convertPorts(ports);
}

function nameOf(value: unknown): string {
  if (typeof value === "string") return value;
  throw new Unconvertible(`${quoted(value)} is not the name of a port`);
}

/** A port as the orchestrator's NetworkPolicy has it. */
interface OrchestratorPort {
  readonly protocol: string;
  readonly port?: number | string;
  readonly endPort?: number;
}

function rangeOf(given: unknown): Pick<OrchestratorPort, "port" | "endPort"> {
  const { number, range } = fieldsOf(given, "destinationPort", ["number", "range"]);
  if (isGiven(number) === isGiven(range)) throw new Unconvertible("a destinationPort needs either number or range");
  if (isGiven(number)) return { port: requirePort(number) };
  const { start, end } = fieldsOf(range, "a range of ports", ["start", "end"]);
  return { port: requirePort(start), endPort: requirePort(end) };
}

/** A name is none here. */
function requirePort(value: unknown): number {
  if (typeof value === "number") return value;
  throw new Unconvertible(`${quoted(value)} is not a port`);
}
