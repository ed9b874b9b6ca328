/**
 * The sessions that BGPPeers ask for. Pure.
 *
 *   BGPPeer    nodes: node | nodeSelector | all   <── session ──>   peers: peerIP | peerSelector
 *   forward    this node is one of the nodes: a session with each of the peers
 *   reverse    this node is one of the peers: a session with each of the nodes
 */
import { type Address, formatAddress } from "../../ip/address.ts";
import { restartSeconds } from "../../model/bgp-fields.ts";
import type { BGPFilter } from "../../model/bgp-filter.ts";
import type { BGPPeer, BGPPeerSpec } from "../../model/bgp-peer.ts";
import { quoted } from "../../quote.ts";
import { type Password, resolvePassword } from "./facts.ts";
import { filterRules } from "./filter-rules.ts";
import type { PlannedSessions } from "./mesh-sessions.ts";
import { endsOf, type Remote } from "./peer-ends.ts";
import type { BgpSession } from "./plan.ts";
import { sessionOf } from "./session.ts";
import type { Speakers } from "./speakers.ts";

export interface PeerFacts {
  readonly speakers: Speakers;
  readonly filters: ReadonlyMap<string, BGPFilter>;
  readonly passwords: ReadonlyMap<string, Password>;
}

export interface SessionsOfPeer {
  readonly forward: readonly BgpSession[];
  readonly reverse: readonly BgpSession[];
  readonly problems: readonly string[];
}

export function peerSessions(peer: BGPPeer, facts: PeerFacts): SessionsOfPeer {
  const { spec } = peer;
  const ends = endsOf(spec, facts.speakers);
  const remotes = ends.forward();
  const isGlobal = spec.node === undefined && spec.nodeSelector === undefined;
  const plan = (kind: BgpSession["kind"], to: readonly Remote[]) => sessionsWith(to, { peer, kind }, facts);
  const forward = plan(isGlobal ? "global" : "node specific", remotes);
  const reverse = plan("node specific", spec.reversePeering === "Manual" ? [] : ends.reverse());
  return {
    forward: forward.sessions,
    reverse: reverse.sessions,
    problems: [
      ...forward.problems,
      ...reverse.problems,
      ...(spec.peerSelector === undefined ? remotes.flatMap((to) => wrongAsNumber(peer, to, facts.speakers)) : []),
    ],
  };
}

interface Asked {
  readonly peer: BGPPeer;
  readonly kind: BgpSession["kind"];
}

function sessionsWith(remotes: readonly Remote[], asked: Asked, facts: PeerFacts): PlannedSessions {
  if (remotes.length === 0) return { sessions: [], problems: [] };
  const { speakers, filters, passwords } = facts;
  const { spec } = asked.peer;
  const password = resolvePassword(spec.password, passwords);
  const missing = (spec.filters ?? []).filter((name) => !filters.has(name));
  const reasons = [
    ...(password.ok ? [] : [password.problem]),
    ...missing.map((name) => `BGPFilter ${quoted(name)} does not exist; create it, or remove it from filters`),
  ];
  const noSession = (reason: string) => `${referenceTo(asked.peer)}: no session, because ${reason}`;
  if (!password.ok || reasons.length > 0) return { sessions: [], problems: reasons.map(noSession) };

  const used = (spec.filters ?? []).flatMap((name) => filters.get(name) ?? []);
  const common = { ...usualOf(asked), password: password.text };
  const problems: string[] = [];
  const sessions = remotes.flatMap(({ address, port, asNumber, localAs, node }): BgpSession[] => {
    const source = spec.sourceAddress === "None" ? undefined : speakers.self.addresses[address.family]?.address;
    if (source === undefined && spec.sourceAddress !== "None") {
      problems.push(noSession(noSource(address)));
      return [];
    }
    return [
      sessionOf(speakers, node, {
        ...common,
        address,
        port,
        localAs,
        peerAs: asNumber,
        source,
        nextHop: nextHopOf(spec, localAs === asNumber),
        importRules: filterRules(used, address.family, "import"),
        exportRules: filterRules(used, address.family, "export"),
      }),
    ];
  });
  return { sessions, problems };
}

/** What all sessions of a BGPPeer have in common. */
function usualOf({ peer, kind }: Asked) {
  const { maxRestartTime, numAllowedLocalASNumbers, ttlSecurity } = peer.spec;
  return {
    kind,
    from: referenceTo(peer),
    restartSeconds: maxRestartTime === undefined ? undefined : restartSeconds(maxRestartTime),
    allowedOwnAs: numAllowedLocalASNumbers ?? 0,
    ttlSecurityHops: ttlSecurity || undefined,
  };
}

function referenceTo({ metadata }: BGPPeer): string {
  return `BGPPeer ${quoted(metadata.name)}`;
}

function noSource({ family }: Address): string {
  return `this node has no IPv${family} address in spec.bgp; add one, or use sourceAddress: None`;
}

function nextHopOf({ nextHopMode, keepOriginalNextHop }: BGPPeerSpec, isSameAs: boolean): BgpSession["nextHop"] {
  if (nextHopMode === "Self") return "self";
  if (nextHopMode === "Keep") return "keep";
  return nextHopMode === undefined && keepOriginalNextHop === true && !isSameAs ? "keep" : "automatic";
}

function wrongAsNumber(peer: BGPPeer, { address, asNumber, node }: Remote, speakers: Speakers): readonly string[] {
  const actual = node && speakers.asNumberOf(node);
  if (node === undefined || actual === asNumber) return [];
  return [
    `${referenceTo(peer)}: ${formatAddress(address)} is node ${quoted(node.name)}, whose AS number is ${actual}, not ${asNumber}; correct asNumber`,
  ];
}
