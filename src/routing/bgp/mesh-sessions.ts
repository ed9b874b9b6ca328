/** The full mesh: a session with every other node that is not a route reflector. Pure. */
import { restartSeconds } from "../../model/bgp-fields.ts";
import { type Password, resolvePassword } from "./facts.ts";
import type { BgpSession } from "./plan.ts";
import { sessionOf } from "./session.ts";
import { FAMILIES, type Speakers } from "./speakers.ts";

export interface PlannedSessions {
  readonly sessions: readonly BgpSession[];
  readonly problems: readonly string[];
}

const NOTHING: PlannedSessions = { sessions: [], problems: [] };

export function meshSessions(speakers: Speakers, passwords: ReadonlyMap<string, Password>): PlannedSessions {
  const { self, settings, others, asNumberOf, listenPortOf } = speakers;
  const { nodeMeshPassword: reference, nodeMeshMaxRestartTime: restart } = settings;
  if (!settings.nodeToNodeMeshEnabled || self.routeReflectorClusterId !== undefined) return NOTHING;
  const password = resolvePassword(reference, passwords);
  if (!password.ok) return { sessions: [], problems: [`BGP between nodes: no session, because ${password.problem}`] };
  const sessions = others
    .filter((node) => node.routeReflectorClusterId === undefined)
    .flatMap((node) =>
      FAMILIES.flatMap((family): BgpSession[] => {
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
