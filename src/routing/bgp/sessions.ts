/**
 * From the resources of BGP and the nodes of a cluster to what BGP does on one of them. Pure; does not depend on the
 * order of anything.
 *
 * If several resources ask for a session with the same address and port, the first of these decides: a BGPPeer without
 * nodes, a BGPPeer with nodes, a BGPPeer whose peer this node is, the mesh; among equals the first by name.
 */
import { type Family, formatAddress } from "../../ip/address.ts";
import type { BGPPeer } from "../../model/bgp-peer.ts";
import { withCountedAddresses } from "../counted-nodes.ts";
import type { RoutedNode } from "../facts.ts";
import { planAdvertisements, planAnnouncements } from "./announcements.ts";
import type { BgpFacts } from "./facts.ts";
import { carriedFamilies, meshSessions, type PlannedSessions } from "./mesh-sessions.ts";
import { type PeerFacts, peerSessions } from "./peer-sessions.ts";
import type { BgpPlan, BgpSession } from "./plan.ts";
import { routerId } from "./router-id.ts";
import { byName, FAMILIES, speakersOf } from "./speakers.ts";

export function planBgp(facts: BgpFacts): BgpPlan {
  const nodes = withCountedAddresses([...facts.nodes], facts.node);
  const configurations = [...facts.configurations];
  const known = nodes.find(({ name }) => name === facts.node);
  const self: RoutedNode = known ?? { name: facts.node, labels: {}, addresses: {}, vxlan: {}, podCidrs: [] };
  const speakers = speakersOf(self, nodes, configurations);
  const { settings } = speakers;
  const pools = [...facts.pools];
  const filters = new Map(Array.from(facts.filters, (filter) => [filter.metadata.name, filter]));
  const announced = [...facts.announced];
  const outsidePools = [...facts.outsidePools];
  const families = carriedFamilies({ nodes, pools, announced, outsidePools });
  const peerFacts = { speakers, filters, passwords: facts.passwords };
  const { sessions, problems } = planSessions(facts.peers, families, peerFacts);
  const advertised = planAdvertisements(settings);
  const announcedBefore = facts.announcedBefore ?? [];
  const localServices = facts.localServices ?? [];
  const announcements = planAnnouncements({
    ...{ self, nodes, pools, announced, outsidePools, settings, localServices, announcedBefore },
  });
  return {
    routerId: routerId(self.name, self.addresses[4]?.address),
    asNumber: speakers.asNumberOf(self),
    addresses: addressesByFamily(self),
    listenPort: settings.listenPort,
    listenOn: settings.bindMode === "NodeIP" ? "node" : "all",
    log: settings.logSeverityScreen,
    ...announcements,
    advertisements: advertised.advertisements,
    ignoredInterfaces: [...new Set(settings.ignoredInterfaces ?? [])].sort(),
    sessions,
    problems: [...problems, ...announcements.problems, ...advertised.problems],
  };
}

function addressesByFamily({ addresses }: RoutedNode): BgpPlan["addresses"] {
  return Object.fromEntries(
    FAMILIES.flatMap((family) => {
      const address = addresses[family]?.address;
      return address === undefined ? [] : [[family, address]];
    }),
  );
}

function planSessions(peers: Iterable<BGPPeer>, meshFamilies: ReadonlySet<Family>, facts: PeerFacts): PlannedSessions {
  const ordered = [...peers].sort((left, right) => byName(left.metadata, right.metadata));
  const planned = ordered.map((peer) => peerSessions(peer, facts));
  const mesh = meshSessions(facts.speakers, meshFamilies, facts.passwords);
  const problems = [...planned, mesh].flatMap((each) => each.problems);

  const chosen = new Map<string, BgpSession>();
  const asked = planned.flatMap(({ forward }) => forward);
  for (const kind of ["global", "node specific"] as const) {
    for (const session of asked.filter((each) => each.kind === kind)) {
      const before = chosen.get(endOf(session));
      if (before === undefined) chosen.set(endOf(session), session);
      else problems.push(alreadyHeld(session, before));
    }
  }
  for (const session of planned.flatMap(({ reverse }) => reverse)) {
    if (!chosen.has(endOf(session))) chosen.set(endOf(session), session);
  }
  const taken = new Set(Array.from(chosen.values(), ({ address }) => formatAddress(address)));
  const others = mesh.sessions.filter(({ address }) => !taken.has(formatAddress(address)));
  return { sessions: [...chosen.values(), ...others].sort(byName), problems: [...new Set(problems)] };
}

function endOf({ address, port }: BgpSession): string {
  return `${formatAddress(address)} ${port}`;
}

function alreadyHeld({ from, address }: BgpSession, before: BgpSession): string {
  return `${from}: no session with ${formatAddress(address)}, because ${before.from} has one`;
}
