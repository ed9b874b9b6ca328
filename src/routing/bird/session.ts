/** One BGP session as a protocol of BIRD. */
import { type Address, formatAddress } from "../../ip/address.ts";
import { prefixAround, prefixContains } from "../../ip/prefix.ts";
import { isClusterId } from "../../model/node.ts";
import type { BgpPlan, BgpSession } from "../bgp/plan.ts";
import { exportFilter, importFilter } from "./filters.ts";
import { block, description, isProtocolName, isQuotable, quotedText } from "./text.ts";

/** The kernel signs packets with a password of at most this many bytes. */
const LONGEST_PASSWORD = 80;
/** A peer that knows graceful restart keeps the routes of a killed BIRD for this long. */
const RESTART_SECONDS = 120;

/** Routes of one node of the mesh: many times what a node has, little for BIRD and the kernel. What exceeds it is ignored. */
const MOST_OF_NODE = 10_000;

const LINK_LOCAL = prefixAround({ family: 6, value: 0xfe80n << 112n }, 10);

/** Between the kind of a session and the name of its peer, in the description that BIRD repeats in its status. */
export const KIND_END = ": ";

/** Why BIRD cannot hold the session; `undefined` if it can. For people: never shows a password. */
export function sessionProblem(session: BgpSession, plan: BgpPlan): string | undefined {
  const reason = reasonAgainst(session, ownAddress(session, plan));
  return reason && `${session.from}: no session with ${formatAddress(session.address)}, because ${reason}`;
}

/** One that BIRD refused would keep all others from changing. */
function reasonAgainst(session: BgpSession, own: Address | undefined): string | undefined {
  const { name, address, localAs, peerAs, reflector, password } = session;
  const { importRules, exportRules } = session;
  if (!isProtocolName(name)) return `${JSON.stringify(name)} is not a name that BIRD accepts`;
  if (address.value === 0n || localAs === 0 || peerAs === 0) return "the address or an AS number is 0";
  if ([address, own ?? address].some((each) => prefixContains(LINK_LOCAL, each))) {
    return "link-local addresses are not supported; use other addresses of the two ends";
  }
  if (reflector !== undefined && !isClusterId(reflector.clusterId)) {
    return `${JSON.stringify(reflector.clusterId)} is not a cluster ID; use one in the form of an IPv4 address`;
  }
  if (password !== undefined) {
    const bytes = Buffer.byteLength(password);
    if (!isQuotable(password))
      return "BIRD cannot read a password with a quotation mark or a line break; use another one";
    if (bytes === 0 || bytes > LONGEST_PASSWORD) {
      return `the password has ${bytes} bytes; use one with 1 to ${LONGEST_PASSWORD}`;
    }
  }
  const patterns = [...importRules, ...exportRules].map((rule) => rule.interface ?? "");
  const pattern = patterns.find((each) => !isQuotable(each));
  return pattern && `the interface ${JSON.stringify(pattern)} of a filter has a quotation mark or a line break`;
}

/** `session` has no problem. */
export function renderSession(session: BgpSession, plan: BgpPlan): string {
  const { address, port, localAs, peerAs, reflector, ttlSecurityHops } = session;
  const isInternal = localAs === peerAs;
  const own = ownAddress(session, plan);
  return block(`protocol bgp ${session.name}`, [
    `description ${description(`${session.kind}${KIND_END}${session.from}`)};`,
    `local ${own === undefined ? "" : `${formatAddress(own)} `}port ${plan.listenPort} as ${localAs};`,
    `neighbor ${formatAddress(address)} port ${port} as ${peerAs};`,
    ttlSecurityHops === undefined ? "multihop;" : `multihop ${ttlSecurityHops};`,
    ttlSecurityHops === undefined ? undefined : "ttl security on;",
    plan.listenOn === "node" && own !== undefined ? "strict bind on;" : undefined,
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
      session.kind === "node-to-node mesh" ? `import limit ${MOST_OF_NODE} action block;` : undefined,
      `${exportFilter(session, plan)};`,
      "gateway recursive;",
      "add paths on;",
      session.nextHop === "automatic" ? undefined : `next hop ${session.nextHop};`,
    ])};`,
  ]);
}

/** The address that BIRD speaks from. `undefined`: the kernel chooses it. */
export function ownAddress({ source, address }: BgpSession, { listenOn, addresses }: BgpPlan): Address | undefined {
  const own = source ?? (listenOn === "node" ? addresses[address.family] : undefined);
  return own?.value === 0n ? undefined : own;
}
