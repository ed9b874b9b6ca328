/** One BGP session as a protocol of BIRD. */
import { formatAddress } from "../../ip/address.ts";
import type { BgpPlan, BgpSession } from "../bgp/plan.ts";
import { exportFilter, importFilter } from "./filters.ts";
import { block, description, isProtocolName, isQuotable, quotedText } from "./text.ts";

/** The kernel signs packets with a password of at most this many bytes. */
const LONGEST_PASSWORD = 80;
/** A peer that knows graceful restart keeps the routes of a killed BIRD for this long. */
const RESTART_SECONDS = 120;

/** Between the kind of a session and the name of its peer, in the description that BIRD repeats in its status. */
export const KIND_END = ": ";

/** Why BIRD cannot hold the session; `undefined` if it can. For people: never shows a password. */
export function sessionProblem({ name, from, password, importRules, exportRules }: BgpSession): string | undefined {
  const of = `the BGP session with "${from}"`;
  if (!isProtocolName(name)) return `${of} is left out: ${JSON.stringify(name)} is not a name that BIRD accepts`;
  if (password !== undefined && !isQuotable(password)) {
    return `${of} is left out: its password has a quotation mark or a line break, which BIRD cannot read: choose another one`;
  }
  if (password !== undefined && (password === "" || Buffer.byteLength(password) > LONGEST_PASSWORD)) {
    return `${of} is left out: its password has ${Buffer.byteLength(password)} bytes: choose one with 1 to ${LONGEST_PASSWORD}`;
  }
  const pattern = [...importRules, ...exportRules]
    .map((rule) => rule.interface ?? "")
    .find((each) => !isQuotable(each));
  if (pattern === undefined) return undefined;
  return `${of} is left out: the interface ${JSON.stringify(pattern)} of a filter has a quotation mark or a line break`;
}

/** `session` has no problem. */
export function renderSession(session: BgpSession, plan: BgpPlan): string {
  const { address, port, localAs, peerAs, reflector, ttlSecurityHops } = session;
  const isInternal = localAs === peerAs;
  return block(`protocol bgp ${session.name}`, [
    `description ${description(`${session.kind}${KIND_END}${session.from}`)};`,
    localEnd(session, plan),
    `neighbor ${formatAddress(address)} port ${port} as ${peerAs};`,
    ttlSecurityHops === undefined ? "multihop;" : `multihop ${ttlSecurityHops};`,
    ttlSecurityHops === undefined ? undefined : "ttl security on;",
    plan.listenOn === "node" ? "strict bind on;" : undefined,
    session.password === undefined ? undefined : `password ${quotedText(session.password)};`,
    session.passive ? "passive on;" : undefined,
    // Of another AS the peer needs no reflector: it gets the routes anyway.
    reflector && isInternal ? "rr client;" : undefined,
    reflector && isInternal ? `rr cluster id ${reflector.clusterId};` : undefined,
    session.allowedOwnAs > 0 ? `allow local as ${session.allowedOwnAs};` : undefined,
    "graceful restart on;",
    `graceful restart time ${session.restartSeconds ?? RESTART_SECONDS};`,
    "connect delay time 1;",
    "connect retry time 5;",
    "error wait time 1, 10;",
    `${block(address.family === 4 ? "ipv4" : "ipv6", [
      `${importFilter(session)};`,
      `${exportFilter(session)};`,
      "gateway recursive;",
      "add paths on;",
      session.nextHop === "automatic" ? undefined : `next hop ${session.nextHop};`,
    ])};`,
  ]);
}

function localEnd({ source, address: { family }, localAs }: BgpSession, { listenOn, addresses, listenPort }: BgpPlan) {
  const own = source ?? (listenOn === "node" ? addresses[family] : undefined);
  return `local ${own === undefined ? "" : `${formatAddress(own)} `}port ${listenPort} as ${localAs};`;
}
