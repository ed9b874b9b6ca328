/** Which resources `delete` deletes: those of files, those named, those selected with `-l`, or all of a kind. */

import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import type { ResourceName } from "../../model/keys.ts";
import type { AdminKind } from "../kinds/kind.ts";
import { type Given, UsageError } from "../main/command.ts";
import type { Files, Terminal } from "../main/context.ts";
import { FILE_OPTION } from "../manifest/options.ts";
import { readGivenResources } from "../manifest/sources.ts";
import { searchedNamespace, selectionsOf } from "../resources/find.ts";
import { isSelected, selectorOf, withLabels } from "../resources/label-selector.ts";
import { SELECTOR_OPTION } from "../resources/options.ts";
import type { Selection } from "../resources/reference.ts";
import { resolveSelections } from "../resources/resolve-name.ts";
import { findAll } from "../resources/stored.ts";
import { resourceAt } from "../resources/unreadable-remedy.ts";

/** A resource to delete. */
export interface DeletionTarget {
  readonly kind: AdminKind;
  readonly name: ResourceName;
  /** Only if it is still at this revision. */
  readonly revision?: string;
}

/** Finds the targets in the datastore. */
export type TargetSearch = (store: Datastore) => Promise<readonly DeletionTarget[]>;

/** Checks the call before the datastore is opened. */
export async function deletionTargets(context: Terminal & Files, given: Given): Promise<TargetSearch> {
  const isOfMany = given.switches.has("all") || given.values.has(SELECTOR_OPTION.name);
  if (given.switches.has("all") && given.values.has(SELECTOR_OPTION.name)) {
    throw new UsageError("--all and --selector cannot be combined");
  }
  if (given.lists.has(FILE_OPTION.name)) {
    if (isOfMany) throw new UsageError("-f cannot be combined with --all or --selector");
    const targets = await targetsOfFiles(context, given);
    return async () => targets;
  }
  const selections = await selectionsOf(context, given);
  if (isOfMany) return searchOfMany(selections, given);
  const nameless = selections.find(({ names }) => names.length === 0);
  if (nameless) {
    throw new UsageError(`The name of the ${nameless.kind.kind} to delete is required, or -l SELECTOR, or --all`);
  }
  return async (store) =>
    (await resolveSelections(store, selections)).flatMap(({ kind, names }) => names.map((name) => ({ kind, name })));
}

async function targetsOfFiles(context: Terminal & Files, given: Given): Promise<readonly DeletionTarget[]> {
  if (given.operands.length > 0) throw new UsageError("Give either -f or KIND and NAME, not both");
  return (await readGivenResources(context, given)).map(({ kind, name, resource }) => {
    const revision = resource.metadata.resourceVersion;
    return { kind, name, ...(revision === undefined ? {} : { revision }) };
  });
}

function searchOfMany(selections: readonly Selection[], given: Given): TargetSearch {
  const named = selections.find(({ names }) => names.length > 0);
  if (named) throw new UsageError("Give either names, or -l SELECTOR, or --all");
  const selector = selectorOf(given);
  return async (store) => {
    const targets: DeletionTarget[] = [];
    for (const selection of selections) {
      const { readable, unreadable } = await findAll(store, selection.kind, searchedNamespace(selection, given));
      if (selector && unreadable[0]) throw labelsUnknown(unreadable[0].failure);
      targets.push(
        ...(await withLabels(store, readable, given))
          .filter((stored) => isSelected(stored, selector))
          .map(({ kind, resource }) => ({ kind, name: nameOf(kind, resource.metadata) })),
        // Each of them fails on its own, or is deleted with --force.
        ...unreadable.flatMap(({ key }) => resourceAt(key) ?? []),
      );
    }
    return targets;
  };
}

function nameOf(kind: AdminKind, { name, namespace }: ResourceName): ResourceName {
  return kind.namespaced && namespace !== undefined ? { name, namespace } : { name };
}

function labelsUnknown(failure: PluginError): PluginError {
  return new PluginError(failure.kind, `Cannot delete by label: ${failure.message}`, {
    details: failure.details,
    cause: failure,
  });
}
