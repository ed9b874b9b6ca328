/** Rules with everything resolved -> rules as a sidecar gets them, and the sets that they refer to. Pure. */
import { formatPrefix } from "../../ip/prefix.ts";
import type { EffectivePeer, EffectiveRule, PortMatch } from "../../policy/effective-rule.ts";
import type { SelectorText } from "../../policy/effective-selector.ts";
import { type AnyReference, identitySetName, wholeSetName } from "../../policy/table/names.ts";
import type { SidecarPeer, SidecarPorts, SidecarRule } from "../protocol/sidecar-state.ts";

export interface RulesForSidecar {
  readonly rules: readonly SidecarRule[];
  /** The sets that the rules refer to, by name. */
  readonly sets: ReadonlyMap<string, AnyReference>;
  readonly identities: ReadonlyMap<string, SelectorText>;
}

const TCP = 6;

const known = new WeakMap<readonly EffectiveRule[], RulesForSidecar>();

/** The same object for the same rules: the sidecars of many pods get the same policies. */
export function rulesForSidecar(rules: readonly EffectiveRule[]): RulesForSidecar {
  const before = known.get(rules);
  if (before !== undefined) return before;
  const converted = convertRules(rules);
  known.set(rules, converted);
  return converted;
}

function convertRules(rules: readonly EffectiveRule[]): RulesForSidecar {
  const kept = rules.flatMap((rule, index) => sidecarRule(rule, index) ?? []);
  const sets = new Map<string, AnyReference>();
  const identities = new Map<string, SelectorText>();
  for (const { index } of kept) {
    const { source, destination } = rules[index] ?? {};
    for (const peer of [source, destination]) {
      if (peer === undefined) continue;
      for (const reference of referencesOf(peer)) sets.set(wholeSetName(reference), reference);
      if (peer.identities !== undefined) identities.set(identitySetName(peer.identities), peer.identities);
    }
  }
  return { rules: kept, sets, identities };
}

/** `undefined` if the rule does not decide about connections of TCP. */
function sidecarRule(rule: EffectiveRule, index: number): SidecarRule | undefined {
  const { action, family, protocol, notProtocol } = rule;
  if (action === "Log" || (protocol !== undefined && protocol !== TCP) || notProtocol === TCP) return undefined;
  return {
    index,
    action,
    ...(family === undefined ? {} : { family }),
    source: sidecarPeer(rule.source),
    destination: sidecarPeer(rule.destination),
    ...(rule.http === undefined ? {} : { http: rule.http }),
  };
}

function sidecarPeer({ nets, notNets, members, notMembers, ports, notPorts, identities }: EffectivePeer): SidecarPeer {
  return {
    ...(nets === undefined ? {} : { nets: nets.map(formatPrefix) }),
    ...(notNets.length === 0 ? {} : { notNets: notNets.map(formatPrefix) }),
    ...(members.length === 0 ? {} : { sets: members.map(wholeSetName) }),
    ...(notMembers.length === 0 ? {} : { notSets: notMembers.map(wholeSetName) }),
    ...(ports === undefined ? {} : { ports: sidecarPorts(ports) }),
    ...(notPorts === undefined ? {} : { notPorts: sidecarPorts(notPorts) }),
    ...(identities === undefined ? {} : { identities: identitySetName(identities) }),
  };
}

function sidecarPorts({ ranges, named }: PortMatch): SidecarPorts {
  return {
    ranges: ranges.map(({ first, last }) => [first, last] as const),
    ...(named === undefined ? {} : { set: wholeSetName(named) }),
  };
}

function referencesOf({ members, notMembers, ports, notPorts }: EffectivePeer): readonly AnyReference[] {
  return [...members, ...notMembers, ports?.named, notPorts?.named].filter((reference) => reference !== undefined);
}
