/** The names of chains and sets in the policy table: a kind, and a hash of what they stand for. Pure. */
import type { Family } from "../../ip/address.ts";
import type { DataType } from "../../linux/nftables/data-type.ts";
import type { KeyRange } from "../../linux/nftables/intervals.ts";
import type { Direction, EffectiveRule, NamedPortReference, SetReference } from "../effective-rule.ts";

/** Anything that a kernel set holds. */
export type AnyReference = SetReference | NamedPortReference;

/** `prefixes`: the networks of network sets, which need a set of ranges. */
export type SetContent = "members" | "prefixes";

/** Ranges that do not overlap or touch, in ascending order. */
export interface RangeList {
  readonly key: DataType;
  readonly ranges: readonly KeyRange[];
}

interface ReferenceNames {
  readonly text: string;
  readonly digest: string;
}

/** Rules are rendered often, and hashing is slow. */
const namesOfReference = new WeakMap<AnyReference, ReferenceNames>();

function namesOf(reference: AnyReference): ReferenceNames {
  const known = namesOfReference.get(reference);
  if (known !== undefined) return known;
  const text = describe(reference);
  const names = { text, digest: digestOf(text) };
  namesOfReference.set(reference, names);
  return names;
}

/** The same text for equal references. */
export function referenceText(reference: AnyReference): string {
  return namesOf(reference).text;
}

/** What the rules refer to, each once. */
export function referencesOf(rules: readonly EffectiveRule[]): readonly AnyReference[] {
  const found = new Map<string, AnyReference>();
  for (const { source, destination } of rules) {
    for (const { members, notMembers, ports, notPorts } of [source, destination]) {
      for (const reference of [...members, ...notMembers, ports?.named, notPorts?.named]) {
        if (reference !== undefined) found.set(referenceText(reference), reference);
      }
    }
  }
  return [...found.values()];
}

function describe(reference: AnyReference): string {
  switch (reference.kind) {
    case "selected":
      return `selected ${reference.selector}`;
    case "service":
      return `service ${reference.namespace}/${reference.name} ${reference.withPorts ? "with ports" : "without ports"}`;
    case "named port":
      return `named port ${reference.protocol} ${reference.names.join()} ${reference.selector}`;
  }
}

const LETTER = { selected: "s", service: "v", "named port": "p" } as const;

export function setName(reference: AnyReference, family: Family, content: SetContent = "members"): string {
  const letter = content === "prefixes" ? "n" : LETTER[reference.kind];
  return `${letter}_${namesOf(reference).digest}_${family}`;
}

/** The family of a set whose elements begin with the address of a member; `undefined` for any other name. */
export function familyOfMembers(name: string): Family | undefined {
  const family = /^[svp]_\w+_([46])$/.exec(name)?.[1];
  return family === undefined ? undefined : family === "4" ? 4 : 6;
}

/** What a sidecar calls the members of both families and the networks together. */
export function wholeSetName(reference: AnyReference): string {
  return `${LETTER[reference.kind]}_${namesOf(reference).digest}`;
}

/** What `wholeSetName` returns for the members or the networks of a set; the same name for any other set. */
export function wholeNameOf(set: string): string {
  const [, letter = "", digest] = /^([svpn])_(\w+)_[46]$/.exec(set) ?? [];
  return digest === undefined ? set : `${letter === "n" ? LETTER.selected : letter}_${digest}`;
}

/** What a sidecar calls the service accounts that the selector selects. */
export function identitySetName(selector: string): string {
  return `i_${digestOf(selector)}`;
}

/** The set with the networks of what the given set has the single addresses of. Sets of other kinds have none. */
export function prefixesTwin(name: string): string {
  return name.startsWith("s_") ? `n${name.slice(1)}` : "";
}

/** The set of a long list of ports or networks. */
export function rangeSetName({ key, ranges }: RangeList): string {
  return `r_${digestOf(`${key} ${ranges.map(({ first, last }) => `${first.toHex()}-${last.toHex()}`).join(" ")}`)}`;
}

/** Why a policy needs a chain of its own. */
export interface PolicyChainVariant {
  /** The chain where Pass continues, if a rule has this action. */
  readonly rest: string | undefined;
  /** It has rules with `http`, and the chain does not. */
  readonly isWithoutHttp?: boolean;
  /** Of hosts only, so that its rules know where they judge a packet. */
  readonly isOfHost?: boolean;
}

/** The chain of a policy in one direction. */
export function policyChainName(
  policy: string,
  direction: Direction,
  { rest, isWithoutHttp = false, isOfHost = false }: PolicyChainVariant,
): string {
  const parts = [
    policy,
    ...(rest === undefined ? [] : [rest]),
    ...(isWithoutHttp ? ["without http"] : []),
    ...(isOfHost ? ["of a host"] : []),
  ];
  return `p${letterOf(direction)}_${digestOf(parts.join(" "))}`;
}

/** The chain of all that is evaluated for some endpoints. `content`: what it evaluates. */
export function groupChainName(content: string, direction: Direction): string {
  return `g${letterOf(direction)}_${digestOf(content)}`;
}

function letterOf(direction: Direction): string {
  return direction === "ingress" ? "i" : "e";
}

const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";
const DIGITS = 20;
const BITS_PER_DIGIT = 5;

/** 20 letters and digits: 100 bits of SHA-256. */
function digestOf(text: string): string {
  const bytes = new Bun.CryptoHasher("sha256").update(text).digest();
  let digits = "";
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = (value << 8) | byte;
    for (bits += 8; bits >= BITS_PER_DIGIT && digits.length < DIGITS; bits -= BITS_PER_DIGIT) {
      digits += ALPHABET[(value >>> (bits - BITS_PER_DIGIT)) & 31];
    }
    value &= (1 << bits) - 1;
    if (digits.length === DIGITS) break;
  }
  return digits;
}
