/** Notes about names in what a command writes that stand for nothing: labels, namespaces, nodes, interfaces and profiles. */

import { listed } from "../../counted.ts";
import { isOwnDevice } from "../../linux/rtnetlink/own-devices.ts";
import type { HostEndpoint } from "../../model/host-endpoint.ts";
import { type IdleReason, idlePeers, idlePolicies } from "../../policy/judge/idle-selectors.ts";
import type { AnyEndpoint, AnyPolicy, PolicyResources } from "../../policy/judge/resources.ts";
import { type UnknownName, unknownInterface, unknownProfiles, withMeant } from "../../policy/judge/unknown-names.ts";
import { quoted } from "../../quote.ts";
import type { HostNetwork } from "../main/context.ts";
import { referenceText } from "./reference.ts";

/** The interfaces of a node, which can be known only there. */
export interface NodeLinks {
  readonly node: string;
  readonly names: readonly string[];
}

/** `node`: the name of this host, if it is a node of the network. */
export async function readNodeLinks(
  { linkNames }: HostNetwork,
  node: string | undefined,
): Promise<NodeLinks | undefined> {
  if (node === undefined) return undefined;
  const names = await linkNames().catch(() => undefined);
  return names && { node, names };
}

export function unknownNodeNotes({ metadata, spec }: HostEndpoint, names: readonly string[]): readonly string[] {
  if (spec.node === undefined || names.includes(spec.node)) return [];
  const known = names.length === 0 ? "there are none" : `nodes are ${listed(names)}`;
  const hint = hintOf(withMeant(spec.node, names));
  return [`node ${quoted(spec.node)} of hostendpoint/${metadata.name} is not known: ${known}${hint}`];
}

/** `undefined`: it has the interface, or that cannot be known here. */
export function unknownInterfaceText(endpoint: HostEndpoint, links: NodeLinks | undefined): string | undefined {
  if (links === undefined || endpoint.spec.node !== links.node) return undefined;
  const unknown = unknownInterface(endpoint, links.names);
  if (unknown === undefined) return undefined;
  const shown = links.names.filter((name) => name !== "lo" && !isOwnDevice(name));
  const known = `links are ${listed(shown, MOST_LINKS)}`;
  return `node ${links.node} has no interface ${quoted(unknown.name)} (hostendpoint/${endpoint.metadata.name}): ${known}${hintOf(unknown)}`;
}

const MOST_LINKS = 5;

export function unknownProfileNotes(endpoint: AnyEndpoint, resources: PolicyResources): readonly string[] {
  return unknownProfiles(endpoint, resources).map(
    (unknown) =>
      `profile ${quoted(unknown.name)} of ${referenceText(endpoint, endpoint.metadata)} is not known${hintOf(unknown)}`,
  );
}

/** Of more policies or peers than that, no reason is given. */
const EXPLAINED = 3;

export function idleNotes(policies: readonly AnyPolicy[], resources: PolicyResources): readonly string[] {
  const idle = idlePolicies(policies, resources);
  if (idle.length > EXPLAINED) {
    return [
      `${idle.length} policies select nothing now: ${listed(idle.map(({ policy }) => referenceText(policy, policy.metadata)))}`,
    ];
  }
  return idle.map(({ policy, isForHosts, reason }) => {
    const hosts = isForHosts ? "with preDNAT or doNotTrack it is about host endpoints only" : "";
    const words = [hosts, reasonText(reason(), isForHosts ? "none" : "nothing")];
    return `${referenceText(policy, policy.metadata)} ${idleText(words)}`;
  });
}

export function idlePeerNotes(policies: readonly AnyPolicy[], resources: PolicyResources): readonly string[] {
  const idle = idlePeers(policies, resources);
  const named = idle.map(({ policy, side, selector, reason }) => {
    const what = `${side} selector ${quoted(selector)} of ${referenceText(policy, policy.metadata)}`;
    return [what, reason] as const;
  });
  const distinct = new Map(named);
  if (distinct.size <= EXPLAINED)
    return Array.from(distinct, ([what, reason]) => `${what} ${idleText([reasonText(reason(), "nothing")])}`);
  const names = new Set(idle.map(({ policy }) => referenceText(policy, policy.metadata)));
  return [`${distinct.size} selectors of rules select nothing now, of ${listed([...names])}`];
}

function idleText(reasons: readonly string[]): string {
  const given = reasons.filter((each) => each !== "");
  return `selects nothing now${given.length === 0 ? "" : `: ${given.join(", and ")}`}`;
}

function reasonText(reason: IdleReason | undefined, nothing: "nothing" | "none"): string {
  switch (reason?.kind) {
    case undefined:
      return "";
    case "label":
      return `${nothing} has the label ${quoted(reason.name)}${hintOf(reason)}`;
    case "value":
      return `values of ${quoted(reason.label)} are ${listed(reason.values, MOST_VALUES)}${hintOf(reason)}`;
    case "namespace": {
      const { name, containers } = reason;
      const where = containers.length === 0 ? "" : `; those of containers are in ${listed(containers.map(quoted))}`;
      return `namespace ${quoted(name)} has no endpoint${where}${containers.includes(reason.meant ?? "") ? "" : hintOf(reason)}`;
    }
  }
}

const MOST_VALUES = 5;

function hintOf({ meant }: UnknownName): string {
  return meant === undefined ? "" : `; did you mean ${quoted(meant)}?`;
}
