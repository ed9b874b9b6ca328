/** Finds the resources that a command names, and reports those that do not exist or are unreadable. */

import type { Datastore } from "../../datastore/datastore.ts";
import type { ReadEach } from "../../datastore/read-each.ts";
import { PluginError } from "../../errors.ts";
import { nearestName } from "../../model/nearest-name.ts";
import { type Given, UsageError } from "../main/command.ts";
import type { Files, Terminal } from "../main/context.ts";
import { FILE_OPTION } from "../manifest/options.ts";
import { readGivenResources } from "../manifest/sources.ts";
import { ALL_NAMESPACES_OPTION, NAMESPACE_OPTION, USUAL_NAMESPACE } from "./options.ts";
import { namespaceOf, parseSelections, referenceText, type Selection } from "./reference.ts";
import { findAll, findOne, type Stored } from "./stored.ts";

export interface Found {
  readonly found: readonly Stored[];
  /** One for each resource that does not exist or is unreadable. */
  readonly failures: readonly PluginError[];
}

/** The resources named by `KIND NAME…` or by the documents of `-f`. */
export async function selectionsOf(context: Terminal & Files, given: Given): Promise<readonly Selection[]> {
  if (given.switches.has(ALL_NAMESPACES_OPTION.name) && given.values.has(NAMESPACE_OPTION.name)) {
    throw new UsageError("--all-namespaces and --namespace cannot be combined");
  }
  if (!given.lists.has(FILE_OPTION.name)) return refuseNamesInAllNamespaces(parseSelections(given), given);
  if (given.operands.length > 0) throw new UsageError("Give either -f or KIND and NAME, not both");
  return (await readGivenResources(context, given)).map(({ kind, name }) => ({ kind, names: [name] }));
}

/** A name identifies one resource in one namespace. */
function refuseNamesInAllNamespaces(selections: readonly Selection[], given: Given): readonly Selection[] {
  const named = selections.find(({ kind, names }) => kind.namespaced && names.length > 0);
  if (!named || !given.switches.has(ALL_NAMESPACES_OPTION.name)) return selections;
  throw new UsageError(`A ${named.kind.kind} cannot be requested by name with --all-namespaces; use --namespace`);
}

/** The namespace that all resources of the kind are looked for in; `undefined` for all, or if the kind has none. */
export function searchedNamespace({ kind }: Selection, given: Given): string | undefined {
  const isOfOne = kind.namespaced && !given.switches.has(ALL_NAMESPACES_OPTION.name);
  return isOfOne ? (namespaceOf(given) ?? USUAL_NAMESPACE) : undefined;
}

export async function findSelected(store: Datastore, selection: Selection, given: Given): Promise<Found> {
  const { kind, names } = selection;
  if (names.length === 0) return foundIn(await findAll(store, kind, searchedNamespace(selection, given)));

  const found: Stored[] = [];
  const failures: PluginError[] = [];
  for (const name of names) {
    const answer = foundIn(await findOne(store, kind, name));
    found.push(...answer.found);
    failures.push(...answer.failures);
    if (answer.found.length + answer.failures.length === 0) failures.push(await notFound(store, { kind, name }));
  }
  return { found, failures };
}

function foundIn({ readable, unreadable }: ReadEach<Stored>): Found {
  return { found: readable, failures: unreadable.map(({ failure }) => failure) };
}

/** Suggests the existing resource with the most similar name. */
export async function notFound(
  store: Datastore,
  { kind, name }: { kind: Selection["kind"]; name: Selection["names"][number] },
): Promise<PluginError> {
  const absence = kind.absenceOf?.(name.name);
  if (absence !== undefined) {
    const message = `Cannot find ${referenceText(kind, name)} in the datastore: ${absence}`;
    return new PluginError("resource-missing", message);
  }
  const { readable } = await findAll(store, kind, name.namespace);
  const nearest = nearestName(
    name.name,
    readable.flatMap(({ resource }) => [resource.metadata.name, ...(kind.otherNames?.(resource).names ?? [])]),
  );
  const guess = nearest === undefined ? "" : `did you mean "${nearest}"?`;
  return new PluginError("resource-missing", `Cannot find ${referenceText(kind, name)}: it does not exist`, {
    details: (await namesElsewhere(store, { kind, name })) ?? guess,
  });
}

/**
 * Resources of other namespaces with this name, as `NAMESPACE/NAME`. Only of kinds with other names: podman's users type
 * them without a namespace. If they cannot be listed, nothing is suggested.
 */
async function namesElsewhere(
  store: Datastore,
  { kind, name }: { kind: Selection["kind"]; name: Selection["names"][number] },
): Promise<string | undefined> {
  const { otherNames } = kind;
  if (name.namespace === undefined || otherNames === undefined) return undefined;
  const all = await findAll(store, kind).catch((failure: unknown) => {
    if (failure instanceof PluginError) return undefined;
    throw failure;
  });
  const same = (all?.readable ?? []).filter(({ resource }) =>
    [resource.metadata.name, ...otherNames(resource).names].includes(name.name),
  );
  const titles = [...new Set(same.map(({ resource }) => `${resource.metadata.namespace}/${name.name}`))];
  const [only, ...others] = titles;
  return (
    only && `it is in ${others.length === 0 ? "another namespace" : "other namespaces"}: use ${titles.join(" or ")}`
  );
}
