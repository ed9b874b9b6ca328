/**
 * A NetworkPolicy of the orchestrator -> one of this product, which allows the same. Pure.
 *
 * A rule that cannot be converted is left out and reported: rules can only allow, so the policy then allows less. All
 * fields are read as they come: the orchestrator's next release may have more, and an unknown criterion must not be
 * ignored.
 */
import { API_VERSION, identity } from "../identity.ts";
import { quoted } from "../quote.ts";
import { DEFAULT_TIER } from "./built-in-tiers.ts";
import { derivedUid } from "./derived-uid.ts";
import type { NetworkPolicy } from "./network-policy.ts";
import { type Fields, fieldsOf, IS_POD, isGiven, joined, listIn, networkOf, reasonOf } from "./orchestrator-fields.ts";
import { convertPorts, type ProtocolPorts } from "./orchestrator-ports.ts";
import { convertLabelSelector, Unconvertible } from "./orchestrator-selector.ts";
import type { EntityRule, PolicyRule } from "./policy-rule.ts";
import type { PolicyType } from "./policy-spec.ts";
import { isObject } from "./shape.ts";

/** What precedes the name of the orchestrator's policy in ours. */
export const ORCHESTRATOR_POLICY = "knp.default.";

/** Before those of users without an order, in the same tier. */
const ORDER = 1000;

/** Of a converted policy: why it allows less than the original, in words. */
export const NOT_CONVERTED_ANNOTATION = `${identity.labelPrefix}not-converted`;

/** The parts of the orchestrator's object that are used here. */
export interface OrchestratorPolicy {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly [field: string]: unknown;
  };
  readonly spec?: unknown;
}

export function convertPolicy({ metadata, spec: given }: OrchestratorPolicy): NetworkPolicy {
  const { name, namespace = "", uid, creationTimestamp } = metadata;
  const spec = isObject(given) ? given : {};
  const problems: string[] = [];
  const types = typesIn(spec, problems);
  const selector = selectorOf(spec, problems);
  const annotations = () => ({ [NOT_CONVERTED_ANNOTATION]: problems.join("; ") });
  const rules = {
    ...(types.includes("Ingress") ? { ingress: rulesIn(spec, "ingress", problems) } : {}),
    ...(types.includes("Egress") ? { egress: rulesIn(spec, "egress", problems) } : {}),
  };
  return {
    apiVersion: API_VERSION,
    kind: "NetworkPolicy",
    metadata: {
      name: `${ORCHESTRATOR_POLICY}${name}`,
      namespace,
      ...(uid === undefined ? {} : { uid: derivedUid(uid) }),
      ...(typeof creationTimestamp === "string" ? { creationTimestamp } : {}),
      ...(problems.length === 0 ? {} : { annotations: annotations() }),
    },
    spec: { tier: DEFAULT_TIER, order: ORDER, selector, types: [...types], ...rules },
  };
}

/** If it is unknown whom it selects, it isolates all pods of its namespace. */
function selectorOf({ podSelector = {} }: Fields, problems: string[]): string {
  try {
    return joined([IS_POD, ...convertLabelSelector(podSelector)]);
  } catch (failure) {
    problems.push(`podSelector: ${reasonOf(failure)}, so that all pods of the namespace are selected`);
    return IS_POD;
  }
}

function typesIn({ policyTypes }: Fields, problems: string[]): readonly PolicyType[] {
  const given = Array.isArray(policyTypes) ? policyTypes : [];
  if (given.length === 0) return ["Ingress"];
  const types = (["Ingress", "Egress"] as const).filter((type) => given.includes(type));
  const unknown = given.filter((type) => type !== "Ingress" && type !== "Egress");
  if (unknown.length === 0) return types;
  problems.push(`policyTypes: ${quoted(unknown)} is not known, so that both directions are isolated`);
  return ["Ingress", "Egress"];
}

function rulesIn(spec: Fields, direction: "ingress" | "egress", problems: string[]): PolicyRule[] {
  const rules = Array.isArray(spec[direction]) ? spec[direction] : [];
  return rules.flatMap((rule: unknown, index) => {
    try {
      return convertRule(rule, direction);
    } catch (failure) {
      problems.push(`${direction}[${index}]: ${reasonOf(failure)}, so that it allows nothing`);
      return [];
    }
  });
}

/** One rule for each protocol and peer: those of a list are alternatives. */
function convertRule(given: unknown, direction: "ingress" | "egress"): readonly PolicyRule[] {
  const peersField = direction === "ingress" ? "from" : "to";
  const rule = fieldsOf(given ?? {}, "the rule", ["ports", peersField]);
  const allPorts = convertPorts(listIn(rule, "ports"));
  const peers = listIn(rule, peersField).map(convertPeer);
  const peerSide = direction === "ingress" ? "source" : "destination";
  return allPorts.flatMap((ports) =>
    (peers.length === 0 ? [undefined] : peers).map((peer) => ruleOf(ports, peer, peerSide)),
  );
}

function ruleOf(
  { protocol, ports }: ProtocolPorts,
  peer: EntityRule | undefined,
  peerSide: "source" | "destination",
): PolicyRule {
  const withPorts = ports.length === 0 ? undefined : { ports: [...ports] };
  const destination = peerSide === "source" ? withPorts : merged(peer, withPorts);
  return {
    action: "Allow",
    ...(protocol === undefined ? {} : { protocol }),
    ...(peerSide === "source" && peer !== undefined ? { source: peer } : {}),
    ...(destination === undefined ? {} : { destination }),
  };
}

function merged(left: EntityRule | undefined, right: EntityRule | undefined): EntityRule | undefined {
  return left === undefined && right === undefined ? undefined : { ...left, ...right };
}

function convertPeer(given: unknown): EntityRule {
  const { ipBlock, podSelector, namespaceSelector } = fieldsOf(given, "a peer", [
    "ipBlock",
    "podSelector",
    "namespaceSelector",
  ]);
  const selects = isGiven(podSelector) || isGiven(namespaceSelector);
  if (isGiven(ipBlock)) {
    if (selects) throw new Unconvertible("a peer has an ipBlock and a selector");
    return convertBlock(ipBlock);
  }
  if (!selects) throw new Unconvertible("a peer is empty");
  const pods = isGiven(podSelector) ? convertLabelSelector(podSelector) : [];
  const selector = joined([IS_POD, ...pods]);
  if (!isGiven(namespaceSelector)) return { selector };
  const namespaces = convertLabelSelector(namespaceSelector);
  return { selector, namespaceSelector: namespaces.length === 0 ? "all()" : joined(namespaces) };
}

function convertBlock(given: unknown): EntityRule {
  const block = fieldsOf(given, "an ipBlock", ["cidr", "except"]);
  const except = listIn(block, "except").map(networkOf);
  return { nets: [networkOf(block["cidr"])], ...(except.length === 0 ? {} : { notNets: except }) };
}
