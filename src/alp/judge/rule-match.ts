/** Does a rule match a request? All its criteria must. Pure. */

import { matchesHttp } from "../../http/http-match.ts";
import type { SidecarPorts } from "../protocol/sidecar-state.ts";
import { isWithin } from "./address-ranges.ts";
import type { CompiledPeer, CompiledRule } from "./compiled-rule.ts";
import type { PeerFacts, RequestFacts } from "./request-facts.ts";

export function matchesRule(rule: CompiledRule, request: RequestFacts): boolean {
  return (
    (rule.family === undefined || rule.family === request.source.address.family) &&
    matchesPeer(rule.source, request.source) &&
    (isDenying(rule) || matchesIdentity(rule.source, request)) &&
    matchesPeer(rule.destination, request.destination) &&
    (rule.http === undefined || (request.http !== undefined && matchesHttp(rule.http, request.http)))
  );
}

/** The address alone decides whether a request is denied: a certificate must not lead past a rule that denies. */
function isDenying({ outcome }: CompiledRule): boolean {
  return outcome !== "Pass" && outcome.verdict === "deny";
}

/** A client without a certificate is judged by its address alone, as packets are. */
function matchesIdentity({ identities }: CompiledPeer, { identitySets }: RequestFacts): boolean {
  return identities === undefined || identitySets === undefined || identitySets.has(identities);
}

function matchesPeer(peer: CompiledPeer, facts: PeerFacts): boolean {
  return (
    (peer.ports === undefined || hasPort(peer.ports, facts)) &&
    (peer.notPorts === undefined || !hasPort(peer.notPorts, facts)) &&
    (peer.nets === undefined || isWithin(peer.nets.ranges, facts.address)) &&
    (peer.notNets === undefined || !isWithin(peer.notNets.ranges, facts.address)) &&
    isInAll(peer.sets, facts) &&
    !isInAny(peer.notSets, facts)
  );
}

// Loops, not closures: where rules cannot be told apart by the index, these run for each of them.
function isInAll(sets: readonly string[], facts: PeerFacts): boolean {
  for (const set of sets) if (!isIn(set, facts)) return false;
  return true;
}

function isInAny(sets: readonly string[], facts: PeerFacts): boolean {
  for (const set of sets) if (isIn(set, facts)) return true;
  return false;
}

function isIn(set: string, { sets }: PeerFacts): boolean {
  for (const names of sets) if (names.has(set)) return true;
  return false;
}

function hasPort({ ranges, set }: SidecarPorts, facts: PeerFacts): boolean {
  const { port } = facts;
  if (port === undefined) return false;
  for (const range of ranges) if (range[0] <= port && port <= range[1]) return true;
  return set !== undefined && isIn(set, facts);
}
