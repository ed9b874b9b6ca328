/** A rule as the sidecar compares it with requests: its texts are parsed once, when the node agent sends it. Pure. */
import { type Prefix, parsePrefixOrAddress } from "../../ip/prefix.ts";
import { type AddressRanges, rangesOf } from "./address-ranges.ts";
import { malformedValue } from "./malformed-message.ts";
import { decisionOfProfileRule, decisionOfRule, type RequestDecision } from "./request-decision.ts";
import type { SidecarPeer, SidecarPolicy, SidecarRule } from "./sidecar-state.ts";

export interface CompiledRule extends Pick<SidecarRule, "family" | "http"> {
  readonly source: CompiledPeer;
  readonly destination: CompiledPeer;
  readonly outcome: RequestDecision | "Pass";
}

export interface CompiledPeer extends Pick<SidecarPeer, "ports" | "notPorts" | "identities"> {
  readonly nets?: CompiledNets;
  readonly notNets?: CompiledNets;
  readonly sets: readonly string[];
  readonly notSets: readonly string[];
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
  const { family, http, source, destination } = rule;
  return {
    outcome,
    ...(family === undefined ? {} : { family }),
    ...(http === undefined ? {} : { http }),
    source: compilePeer(source, `${field}.source`),
    destination: compilePeer(destination, `${field}.destination`),
  };
}

function compilePeer(peer: SidecarPeer, field: string): CompiledPeer {
  const { nets, notNets = [], sets = [], notSets = [], ...others } = peer;
  return {
    ...others,
    sets,
    notSets,
    ...(nets === undefined ? {} : { nets: compileNets(nets, `${field}.nets`) }),
    ...(notNets.length === 0 ? {} : { notNets: compileNets(notNets, `${field}.notNets`) }),
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
