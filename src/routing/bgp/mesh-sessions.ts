/**
 * The full mesh: a session with every other node that is not a route reflector, for each family whose routes the nodes
 * need of each other. Pure.
 */
import type { Family } from "../../ip/address.ts";
import { type Prefix, prefixCovers } from "../../ip/prefix.ts";
import { restartSeconds } from "../../model/bgp-fields.ts";
import type { RoutedNode, RoutedPool } from "../facts.ts";
import { type Password, resolvePassword } from "./facts.ts";
import type { BgpSession } from "./plan.ts";
import { sessionOf } from "./session.ts";
import { FAMILIES, type Speakers } from "./speakers.ts";

export interface PlannedSessions {
  readonly sessions: readonly BgpSession[];
  readonly problems: readonly string[];
}

const NOTHING: PlannedSessions = { sessions: [], problems: [] };

export interface CarriedFacts {
  readonly nodes: readonly RoutedNode[];
  readonly pools: readonly RoutedPool[];
  readonly announced: readonly Prefix[];
  readonly outsidePools: readonly Prefix[];
}

/**
 * The families whose routes nodes must learn from each other: those of pools without a tunnel and of pod CIDRs, and of
 * blocks whose pool was deleted, own ones and those of other nodes. The agent routes pools with a tunnel, and services concern other peers only.
 */
export function carriedFamilies({ nodes, pools, announced, outsidePools }: CarriedFacts): ReadonlySet<Family> {
  const carried = [
    ...pools.flatMap(({ prefix, mode, isExported }) => (mode.kind === "unencapsulated" && isExported ? [prefix] : [])),
    ...nodes.flatMap(({ podCidrs }) => podCidrs),
    ...announced.filter((prefix) => !pools.some((pool) => prefixCovers(pool.prefix, prefix))),
    ...outsidePools,
  ];
  return new Set(carried.map(({ network }) => network.family));
}

export function meshSessions(
  speakers: Speakers,
  families: ReadonlySet<Family>,
  passwords: ReadonlyMap<string, Password>,
): PlannedSessions {
  const { self, settings, others, asNumberOf, listenPortOf } = speakers;
  const { nodeMeshPassword: reference, nodeMeshMaxRestartTime: restart } = settings;
  if (!settings.nodeToNodeMeshEnabled || self.routeReflectorClusterId !== undefined) return NOTHING;
  if (families.size === 0) return NOTHING;
  const password = resolvePassword(reference, passwords);
  if (!password.ok) return { sessions: [], problems: [`BGP between nodes: no session, because ${password.problem}`] };
  const sessions = others
    .filter((node) => node.routeReflectorClusterId === undefined)
    .flatMap((node) =>
      FAMILIES.filter((family) => families.has(family)).flatMap((family): BgpSession[] => {
        const source = self.addresses[family]?.address;
        const address = node.addresses[family]?.address;
        if (source === undefined || address === undefined) return [];
        return [
          sessionOf(speakers, node, {
            kind: "node-to-node mesh",
            from: `node "${node.name}"`,
            address,
            port: listenPortOf(node),
            localAs: asNumberOf(self),
            peerAs: asNumberOf(node),
            source,
            password: password.text,
            restartSeconds: restart === undefined ? undefined : restartSeconds(restart),
          }),
        ];
      }),
    );
  return { sessions, problems: [] };
}
