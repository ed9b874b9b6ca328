/** A rule as the sidecar compares it with requests: its texts are parsed once, when the node agent sends it. Pure. */
import type { HttpMatch } from "../../http/http-match.ts";
import { type Prefix, parsePrefixOrAddress } from "../../ip/prefix.ts";
import { malformedValue } from "../protocol/malformed-message.ts";
import type { SidecarPeer, SidecarPolicy, SidecarPorts, SidecarRule } from "../protocol/sidecar-state.ts";
import { type AddressRanges, rangesOf } from "./address-ranges.ts";
import { decisionOfProfileRule, decisionOfRule, type RequestDecision } from "./request-decision.ts";

/** All of one shape, with every field: the engine reads those of one shape faster. */
export interface CompiledRule {
  readonly outcome: RequestDecision | "Pass";
  readonly family: SidecarRule["family"] | undefined;
  readonly http: HttpMatch | undefined;
  readonly source: CompiledPeer;
  readonly destination: CompiledPeer;
}

export interface CompiledPeer {
  readonly nets: CompiledNets | undefined;
  readonly notNets: CompiledNets | undefined;
  readonly sets: readonly string[];
  readonly notSets: readonly string[];
  readonly ports: SidecarPorts | undefined;
  readonly notPorts: SidecarPorts | undefined;
  readonly identities: string | undefined;
}

export interface CompiledNets {
  readonly prefixes: readonly Prefix[];
  readonly ranges: AddressRanges;
}

/** `field`: where the policy is in the message, for errors. */
export function compilePolicy({ title, rules }: SidecarPolicy, field: string): readonly CompiledRule[] {
  return rules.map((rule, place) => {
    const { action, index } = rule;
    const outcome = action === "Pass" ? action : decisionOfRule(action, index, title);
    return compileRule(rule, outcome, `${field}.rules[${place}]`);
  });
}

export function compileProfiles(rules: readonly SidecarRule[], field: string): readonly CompiledRule[] {
  return rules.map((rule, place) => {
    // There is no tier after the profiles: a rule that passes does not allow.
    const outcome = decisionOfProfileRule(rule.action === "Allow" ? "Allow" : "Deny", rule.index);
    return compileRule(rule, outcome, `${field}[${place}]`);
  });
}

/** The names of the sets that a rule refers to. */
export function setsOf({ source, destination }: CompiledRule): readonly string[] {
  return [source, destination].flatMap(({ sets, notSets, ports, notPorts, identities }) =>
    [...sets, ...notSets, ports?.set, notPorts?.set, identities].filter((name) => name !== undefined),
  );
}

function compileRule(rule: SidecarRule, outcome: CompiledRule["outcome"], field: string): CompiledRule {
  return {
    outcome,
    family: rule.family,
    http: rule.http,
    source: compilePeer(rule.source, `${field}.source`),
    destination: compilePeer(rule.destination, `${field}.destination`),
  };
}

function compilePeer(peer: SidecarPeer, field: string): CompiledPeer {
  const { nets, notNets = [], sets = [], notSets = [], ports, notPorts, identities } = peer;
  return {
    nets: nets === undefined ? undefined : compileNets(nets, `${field}.nets`),
    notNets: notNets.length === 0 ? undefined : compileNets(notNets, `${field}.notNets`),
    sets,
    notSets,
    ports,
    notPorts,
    identities,
  };
}

function compileNets(texts: readonly string[], field: string): CompiledNets {
  const prefixes = texts.map((text, place) => {
    const prefix = parsePrefixOrAddress(text);
    if (prefix === undefined) throw malformedValue(`${field}[${place}]`, text, "an address or a network");
    return prefix;
  });
  return { prefixes, ranges: rangesOf(prefixes) };
}
