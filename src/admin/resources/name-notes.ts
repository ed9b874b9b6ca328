/** Notes about names in what a command writes that stand for nothing: nodes, interfaces and profiles. */
import { listed } from "../../counted.ts";
import { isOwnDevice } from "../../linux/rtnetlink/own-devices.ts";
import type { HostEndpoint } from "../../model/host-endpoint.ts";
import type { AnyEndpoint, PolicyResources } from "../../policy/judge/resources.ts";
import { type UnknownName, unknownInterface, unknownProfiles, withMeant } from "../../policy/judge/unknown-names.ts";
import { quoted } from "../../quote.ts";
import type { Context } from "../command.ts";
import { referenceText } from "./reference.ts";

/** The interfaces of a node, which can be known only there. */
export interface NodeLinks {
  readonly node: string;
  readonly names: readonly string[];
}

/** `node`: the name of this host, if it is a node of the network. */
export async function readNodeLinks(
  { linkNames }: Pick<Context, "linkNames">,
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

function hintOf({ meant }: UnknownName): string {
  return meant === undefined ? "" : `; did you mean ${quoted(meant)}?`;
}
