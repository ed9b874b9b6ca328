/** One session of this node. Pure. */
import { compareAddresses, formatAddress } from "../../ip/address.ts";
import type { RoutedNode } from "../facts.ts";
import type { BgpSession } from "./plan.ts";
import { type Speakers, USUAL_PORT } from "./speakers.ts";

const NAME_PREFIX = { "node-to-node mesh": "Mesh", "node specific": "Node", global: "Global" } as const;

type Given = Pick<BgpSession, "kind" | "from" | "address" | "port" | "localAs" | "peerAs">;
type Optional = Pick<
  BgpSession,
  | "source"
  | "password"
  | "nextHop"
  | "restartSeconds"
  | "allowedOwnAs"
  | "ttlSecurityHops"
  | "importRules"
  | "exportRules"
>;

/** Of a session about which nothing special is configured. */
export const USUAL_SESSION: Optional = {
  source: undefined,
  password: undefined,
  nextHop: "automatic",
  restartSeconds: undefined,
  allowedOwnAs: 0,
  ttlSecurityHops: undefined,
  importRules: [],
  exportRules: [],
};

/** `remote`: the other end, if it is a node of the cluster. */
export function sessionOf(
  { self }: Speakers,
  remote: RoutedNode | undefined,
  session: Given & Partial<Optional>,
): BgpSession {
  const own = self.addresses[session.address.family]?.address;
  return {
    ...USUAL_SESSION,
    ...session,
    name: sessionName(session),
    passive: remote !== undefined && own !== undefined && compareAddresses(session.address, own) > 0,
    reflector: reflectorOf(self, remote, session),
  };
}

function sessionName({ kind, address, port }: Given): string {
  const suffix = port === USUAL_PORT ? "" : `_port_${port}`;
  return `${NAME_PREFIX[kind]}_${formatAddress(address).replaceAll(/[^0-9a-z]/g, "_")}${suffix}`;
}

/** Reflectors of one cluster know the same routes; everybody else in the AS is a client. */
function reflectorOf(self: RoutedNode, remote: RoutedNode | undefined, { localAs, peerAs }: Given) {
  const clusterId = self.routeReflectorClusterId;
  if (clusterId === undefined || localAs !== peerAs || remote?.routeReflectorClusterId === clusterId) return undefined;
  return { clusterId };
}
