/** Names in resources that stand for nothing, and what their author may have meant. Pure. */
import { ALL_INTERFACES, type HostEndpoint } from "../../model/host-endpoint.ts";
import { nearestName } from "../../model/nearest-name.ts";
import { DEFAULT_ALLOW_PROFILE } from "../../model/profile.ts";
import { profileNamed } from "./judge.ts";
import type { AnyEndpoint, PolicyResources } from "./resources.ts";

export interface UnknownName {
  readonly name: string;
  /** One that there is and that looks like it. */
  readonly meant?: string;
}

/** Those of its profiles that do not exist: they allow nothing. */
export function unknownProfiles({ spec }: AnyEndpoint, resources: PolicyResources): readonly UnknownName[] {
  const unknown = (spec.profiles ?? []).filter((name) => profileNamed(name, resources) === undefined);
  if (unknown.length === 0) return [];
  const known = [DEFAULT_ALLOW_PROFILE, ...resources.profiles.map(({ metadata }) => metadata.name)];
  return unknown.map((name) => withMeant(name, known));
}

/** `links`: of the node that it is about. */
export function unknownInterface({ spec }: HostEndpoint, links: readonly string[]): UnknownName | undefined {
  const { interfaceName } = spec;
  if (interfaceName === undefined || interfaceName === ALL_INTERFACES || links.includes(interfaceName))
    return undefined;
  return withMeant(interfaceName, links);
}

export function withMeant(name: string, known: readonly string[]): UnknownName {
  const meant = nearestName(name, known);
  return { name, ...(meant === undefined ? {} : { meant }) };
}
