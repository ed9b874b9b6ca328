/** Does a rule match a request? All its criteria must. Pure. */
import { isWithin } from "./address-ranges.ts";
import type { CompiledPeer, CompiledRule } from "./compiled-rule.ts";
import { matchesHttp } from "./http-match.ts";
import type { PeerFacts, RequestFacts } from "./request-facts.ts";
import type { SidecarPorts } from "./sidecar-state.ts";

export function matchesRule(rule: CompiledRule, request: RequestFacts): boolean {
  return (
    (rule.family === undefined || rule.family === request.source.address.family) &&
    matchesPeer(rule.source, request.source) &&
    matchesIdentity(rule.source, request) &&
    matchesPeer(rule.destination, request.destination) &&
    (rule.http === undefined || (request.http !== undefined && matchesHttp(rule.http, request.http)))
  );
}

/** A client without a certificate is judged by its address alone, as packets are. */
function matchesIdentity({ identities }: CompiledPeer, { identitySets }: RequestFacts): boolean {
  return identities === undefined || identitySets === undefined || identitySets.has(identities);
}

function matchesPeer(peer: CompiledPeer, facts: PeerFacts): boolean {
  return (
    peer.sets.every((set) => isIn(set, facts)) &&
    !peer.notSets.some((set) => isIn(set, facts)) &&
    (peer.nets === undefined || isWithin(peer.nets.ranges, facts.address)) &&
    (peer.notNets === undefined || !isWithin(peer.notNets.ranges, facts.address)) &&
    (peer.ports === undefined || hasPort(peer.ports, facts)) &&
    (peer.notPorts === undefined || !hasPort(peer.notPorts, facts))
  );
}

function isIn(set: string, { sets }: PeerFacts): boolean {
  return sets.some((names) => names.has(set));
}

function hasPort({ ranges, set }: SidecarPorts, facts: PeerFacts): boolean {
  const { port } = facts;
  if (port === undefined) return false;
  return ranges.some(([first, last]) => first <= port && port <= last) || (set !== undefined && isIn(set, facts));
}
