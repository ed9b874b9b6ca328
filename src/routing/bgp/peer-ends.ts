/** The two sides of a BGPPeer: which nodes have its sessions, and with whom. Pure. */
import { type Address, formatAddress } from "../../ip/address.ts";
import { parseAsNumber } from "../../model/as-number.ts";
import { type PeerAddress, parsePeerAddress } from "../../model/bgp-fields.ts";
import type { BGPPeerSpec } from "../../model/bgp-peer.ts";
import { parseSelector } from "../../selector/parse.ts";
import { selects } from "../../selector/selector.ts";
import type { RoutedNode } from "../facts.ts";
import { FAMILIES, type Speakers, USUAL_PORT } from "./speakers.ts";

/** An end to speak with. */
export interface Remote {
  readonly address: Address;
  readonly port: number;
  readonly asNumber: number;
  /** The AS number of this node in the session. */
  readonly localAs: number;
  /** If it is a node of the cluster. */
  readonly node: RoutedNode | undefined;
}

export interface PeerEnds {
  /** With whom this node has a session because it is one of the nodes. */
  forward(): readonly Remote[];
  /** With whom this node has a session because it is one of the peers. */
  reverse(): readonly Remote[];
}

type IsNode = (node: RoutedNode) => boolean;

export function endsOf(spec: BGPPeerSpec, speakers: Speakers): PeerEnds {
  const { self, others } = speakers;
  const isNode = spec.node === undefined ? matcherOf(spec.nodeSelector ?? "all()") : nameMatcher(spec.node);
  const isPeer = spec.peerSelector === undefined ? undefined : matcherOf(spec.peerSelector);
  const localAs = spec.localASNumber === undefined ? undefined : parseAsNumber(spec.localASNumber);
  /** In sessions of the BGPPeer. */
  const asNumberOf = (node: RoutedNode) => (isNode(node) ? localAs : undefined) ?? speakers.asNumberOf(node);
  const given = spec.peerIP === undefined ? undefined : parsePeerAddress(spec.peerIP);
  const peerAs = parseAsNumber(spec.asNumber ?? 0);
  const own = asNumberOf(self);

  const withNodes = (nodes: readonly RoutedNode[], ownAs: number) =>
    nodes.flatMap((node) =>
      remotesOf(node, speakers).map((end): Remote => ({ ...end, asNumber: asNumberOf(node), localAs: ownAs })),
    );
  return {
    forward: () => {
      if (!isNode(self)) return [];
      if (isPeer !== undefined) return withNodes(others.filter(isPeer), own);
      if (given === undefined || peerAs === undefined) return [];
      return routerOf(given, speakers).map((end): Remote => ({ ...end, asNumber: peerAs, localAs: own }));
    },
    reverse: () => {
      if (isPeer !== undefined) return isPeer(self) ? withNodes(others.filter(isNode), own) : [];
      const address = isSelfGiven(given, peerAs, speakers) ? given?.address : undefined;
      return address === undefined || peerAs === undefined
        ? []
        : withNodes(others.filter(isNode), peerAs).filter((end) => end.address.family === address.family);
    },
  };
}

function nameMatcher(wanted: string): IsNode {
  return ({ name }) => name === wanted;
}

function matcherOf(selector: string): IsNode {
  const parsed = parseSelector(selector);
  return ({ labels }) => parsed.ok && selects(parsed.selector, labels);
}

type End = Omit<Remote, "asNumber" | "localAs">;

/** Both families, if both nodes have an address of it. */
function remotesOf(node: RoutedNode, speakers: Speakers): readonly End[] {
  return FAMILIES.flatMap((family) => {
    const address = node.addresses[family]?.address;
    if (address === undefined || speakers.self.addresses[family] === undefined) return [];
    return [{ address, port: speakers.listenPortOf(node), node }];
  });
}

function routerOf({ address, port }: PeerAddress, speakers: Speakers): readonly End[] {
  if (isOwn(address, speakers)) return [];
  const node = speakers.withAddress(address);
  const usual = node === undefined ? USUAL_PORT : speakers.listenPortOf(node);
  return [{ address, port: port ?? usual, node }];
}

/** Whether the BGPPeer names this node by its address, AS number and port. */
function isSelfGiven(given: PeerAddress | undefined, asNumber: number | undefined, speakers: Speakers): boolean {
  if (given === undefined || asNumber !== speakers.asNumberOf(speakers.self)) return false;
  const isOwnPort = given.port === undefined || given.port === speakers.listenPortOf(speakers.self);
  return isOwnPort && isOwn(given.address, speakers);
}

function isOwn(address: Address, { self }: Speakers): boolean {
  const own = self.addresses[address.family]?.address;
  return own !== undefined && formatAddress(own) === formatAddress(address);
}
