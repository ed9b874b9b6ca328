/**
 * What the comment of a rule in the policy table says: which rule of which policy it carries out. The comments are written
 * in src/policy/compile/evaluations.ts and src/policy/render. Pure.
 */
import { clusterPolicyName } from "../../model/cluster-network-policy.ts";
import type { Direction } from "../effective-rule.ts";

export type RuleOrigin =
  /** `policy`: `NAMESPACE/NAME`, or `NAME` of a global policy; of a very long one a digest stands for its beginning. `rule`: from 0. */
  | { readonly kind: "policy"; readonly policy: string; readonly direction: Direction; readonly rule: number }
  /** No rule of the tier's policies matched. */
  | { readonly kind: "tier"; readonly tier: string; readonly direction: Direction }
  | { readonly kind: "profile"; readonly direction: Direction }
  | { readonly kind: "no profile"; readonly direction: Direction }
  /** Forwarded by the host, and no rule of a policy of the host matched. */
  | { readonly kind: "no policy"; readonly direction: Direction }
  /** A port of the settings that is open whatever policies say; `source`: it is that of the sender, who replies. */
  | { readonly kind: "failsafe"; readonly side: "source" | "destination" }
  | { readonly kind: "neighbour discovery" }
  /** By it the host reaches others, although its name begins like those of workloads. */
  | { readonly kind: "exempt link"; readonly link: string }
  /** The host itself has sent it to a workload that it runs. */
  | { readonly kind: "own workload" }
  /** It belongs to no connection, and cannot begin one. */
  | { readonly kind: "invalid" }
  /** In words. */
  | { readonly kind: "other"; readonly text: string };

/** Stands for the comment of the rules that drop packets of no connection, which have none. */
export const INVALID_STATE = "state invalid";

export const NEIGHBOUR_DISCOVERY = "neighbour discovery";
export const HOST_TO_OWN_WORKLOAD = "host to its own workload";

export function exemptLinkComment(link: string): string {
  return `exempt link ${link}`;
}

/** The comment of the rule that carries out what decides: of a rule of a policy, the end of a tier, or a profile. */
export function deciderComment(
  {
    kind,
    namespace,
    name,
    rule,
  }: { readonly kind: string; readonly namespace?: string; readonly name: string; readonly rule?: number },
  direction: Direction,
): string {
  if (kind === "Tier") return `tier ${name} ${direction} default`;
  if (kind === "Profile") return `profile ${direction}`;
  return `${namespace === undefined ? name : `${namespace}/${name}`} ${direction} ${rule ?? 0}`;
}

export function noProfileComment(direction: Direction): string {
  return `no profile allows it, ${direction}`;
}

const OF_POLICY = /^(\S+) (ingress|egress) (\d+)$/;
const OF_TIER = /^tier (\S+) (ingress|egress) default$/;
const OF_PROFILE = /^profile (ingress|egress)$/;
const NO_PROFILE = /^no profile allows it, (ingress|egress)$/;
const NO_POLICY = /^no policy decides it, (ingress|egress)$/;
const FAILSAFE = /^failsafe (source|destination) ports$/;
const EXEMPT_LINK = /^exempt link (\S+)$/;

export function readRuleComment(comment: string): RuleOrigin {
  const fixed = FIXED.get(comment);
  if (fixed !== undefined) return fixed;
  const [, policy, ofPolicy, rule] = OF_POLICY.exec(comment) ?? [];
  if (policy !== undefined) return { kind: "policy", policy, direction: directionOf(ofPolicy), rule: Number(rule) };
  const [, tier, ofTier] = OF_TIER.exec(comment) ?? [];
  if (tier !== undefined) return { kind: "tier", tier, direction: directionOf(ofTier) };
  const [, ofProfile] = OF_PROFILE.exec(comment) ?? [];
  if (ofProfile !== undefined) return { kind: "profile", direction: directionOf(ofProfile) };
  const [, ofNone] = NO_PROFILE.exec(comment) ?? [];
  return ofNone === undefined ? readOther(comment) : { kind: "no profile", direction: directionOf(ofNone) };
}

const FIXED: ReadonlyMap<string, RuleOrigin> = new Map([
  [INVALID_STATE, { kind: "invalid" }],
  [NEIGHBOUR_DISCOVERY, { kind: "neighbour discovery" }],
  [HOST_TO_OWN_WORKLOAD, { kind: "own workload" }],
]);

/** What no policy, tier or profile decides. */
function readOther(comment: string): RuleOrigin {
  const [, noPolicy] = NO_POLICY.exec(comment) ?? [];
  if (noPolicy !== undefined) return { kind: "no policy", direction: directionOf(noPolicy) };
  const [, side] = FAILSAFE.exec(comment) ?? [];
  if (side !== undefined) return { kind: "failsafe", side: side === "source" ? "source" : "destination" };
  const [, link] = EXEMPT_LINK.exec(comment) ?? [];
  return link === undefined ? { kind: "other", text: comment } : { kind: "exempt link", link };
}

/** For people: `NetworkPolicy "shop/db", ingress rule 1 (spec.ingress[0])`. */
export function originWords(origin: RuleOrigin): string {
  switch (origin.kind) {
    case "policy": {
      const { policy, direction, rule } = origin;
      const ofCluster = clusterPolicyName(policy);
      if (ofCluster !== undefined) {
        const place = `spec.${direction}[${rule}] of GlobalNetworkPolicy "${policy}"`;
        return `ClusterNetworkPolicy "${ofCluster}", ${direction} rule ${rule + 1} (${place})`;
      }
      const kind = policy.includes("/") ? "NetworkPolicy" : "GlobalNetworkPolicy";
      return `${kind} "${policy}", ${direction} rule ${rule + 1} (spec.${direction}[${rule}])`;
    }
    case "tier":
      return `the end of tier "${origin.tier}": no ${origin.direction} rule of its policies matches`;
    case "profile":
      return `an ${origin.direction} rule of a profile`;
    case "no profile":
      return `the end of the profiles: no ${origin.direction} rule of them allows it`;
    case "no policy":
      return `the end of the policies of the host: none decides about this forwarded packet, ${origin.direction}`;
    case "failsafe":
      return origin.side === "source" ? "a reply from a failsafe port" : "a failsafe port: open whatever policies say";
    case "neighbour discovery":
      return "IPv6 neighbour discovery: allowed whatever policies say";
    case "exempt link":
      return `link "${origin.link}": the host reaches others by it, so its packets are not those of a workload`;
    case "own workload":
      return "the host itself: it may always reach its own workloads";
    case "invalid":
      return "connection tracking: it belongs to no connection (state invalid)";
    case "other":
      return origin.text;
  }
}

/** In a table, beside its direction: the name of the policy, or few words. */
export function originTitle(origin: RuleOrigin): string {
  switch (origin.kind) {
    case "policy":
      return origin.policy;
    case "tier":
      return `end of tier ${origin.tier}`;
    case "profile":
      return "rule of a profile";
    case "no profile":
      return "end of profiles";
    case "no policy":
      return "end of policies";
    case "failsafe":
      return "failsafe port";
    case "exempt link":
      return `exempt link ${origin.link}`;
    case "own workload":
      return "host to its own workload";
    case "neighbour discovery":
      return "neighbour discovery";
    case "invalid":
      return "state invalid";
    case "other":
      return origin.text;
  }
}

function directionOf(text: string | undefined): Direction {
  return text === "egress" ? "egress" : "ingress";
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Two long texts with the same end stay different. No name contains the mark. */
const MARK = "~";
const DIGEST_DIGITS = 10;
const SHORTENED = new RegExp(`^${MARK}([0-9a-f]{${DIGEST_DIGITS}})${MARK}(.*)$`);

/** The text, or, if it has more bytes than that, a digest of its beginning and its end: `~0a1b2c3d4e~ond-policy ingress 0`. */
export function shortComment(text: string, bytes: number): string {
  const isShort = text.length * 3 <= bytes || encoder.encode(text).length <= bytes;
  if (isShort) return text;
  const end = endOfText(text, bytes - DIGEST_DIGITS - 2 * MARK.length);
  return `${MARK}${digestOf(text.slice(0, text.length - end.length))}${MARK}${end}`;
}

/** Whether a comment that perhaps had to be shortened calls it by this name. */
export function isNameOf(inComment: string, name: string): boolean {
  const [, digest, end] = SHORTENED.exec(inComment) ?? [];
  if (end === undefined) return inComment === name;
  return name.endsWith(end) && digestOf(name.slice(0, name.length - end.length)) === digest;
}

/** What is left of a name that had to be shortened; `undefined` if it is whole. */
export function endOfShortened(inComment: string): string | undefined {
  return SHORTENED.exec(inComment)?.[2];
}

function digestOf(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, DIGEST_DIGITS);
}

/** The end of the text, at most so many bytes, from a whole character on: names are cut at their beginning. */
export function endOfText(text: string, bytes: number): string {
  if (text.length * 3 <= bytes) return text;
  const encoded = encoder.encode(text);
  if (encoded.length <= bytes) return text;
  const end = encoded.subarray(encoded.length - bytes);
  return decoder.decode(end.subarray(end.findIndex((byte) => byte >> 6 !== 0b10)));
}
