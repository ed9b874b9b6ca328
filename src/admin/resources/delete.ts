import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import type { ResourceName } from "../../model/keys.ts";
import { type Command, type Context, type Given, UsageError } from "../command.ts";
import { withDatastore } from "../datastore/open.ts";
import type { AdminKind } from "../kinds/kind.ts";
import type { ActionResult } from "./action-result.ts";
import { notFound } from "./find.ts";
import { forEachResource } from "./for-each-resource.ts";
import { lostRace } from "./lost-race.ts";
import { KIND_WORDS, NAMESPACE_OPTION, parseSelections, referenceText } from "./reference.ts";
import { FILE_OPTION, FILE_OPTIONS, readGivenResources } from "./sources.ts";
import { findOne } from "./stored.ts";

/** A resource to delete. */
interface DeletionTarget {
  readonly kind: AdminKind;
  readonly name: ResourceName;
  /** Only if it is still at this revision. */
  readonly revision?: string;
}

export const deleteCommand: Command = {
  kind: "command",
  name: "delete",
  summary: "Delete resources",
  description: [
    "A pool with addresses in use is not deleted, and the error lists who uses it.",
    "With --force it is deleted: running workloads keep their addresses, which are then outside all pools.",
    "Deleting a pool disables it first, then releases its blocks from their nodes, then deletes it.",
    "Deleting a node also releases its block claims. Leftover block claims of a deleted node are removed too.",
    "Its empty blocks are deleted; blocks in use stay without a node and are deleted with their last address.",
    "An unreadable resource is deleted only with --force; whether an unreadable pool is in use is then not checked.",
  ].join("\n"),
  operands: "KIND NAME… | KIND/NAME…",
  completes: KIND_WORDS,
  options: [
    ...FILE_OPTIONS,
    NAMESPACE_OPTION,
    { name: "force", summary: "Delete pools even if their addresses are in use, and unreadable resources" },
    { name: "ignore-not-found", summary: "Do not fail if a resource does not exist" },
  ],
  needsDatastore: true,
  examples: [
    { command: "delete ippool blue", does: "Delete a pool" },
    { command: "delete -f pools.yaml --ignore-not-found", does: "Delete the resources in a file" },
    { command: "delete node n1 --force", does: "Delete a node even if it is unreadable" },
  ],
  async run(context, given) {
    const all = await deletionTargets(context, given);
    return withDatastore(context, given, (store) =>
      forEachResource(context, given, { all, act: (each) => deleteOne(store, each, { context, given }) }),
    );
  },
};

async function deletionTargets(context: Context, given: Given): Promise<readonly DeletionTarget[]> {
  if (given.lists.has(FILE_OPTION.name)) {
    if (given.operands.length > 0) throw new UsageError("Give either -f or KIND and NAME, not both");
    return (await readGivenResources(context, given)).map(({ kind, name, resource }) => {
      const revision = resource.metadata.resourceVersion;
      return { kind, name, ...(revision === undefined ? {} : { revision }) };
    });
  }
  const selections = parseSelections(given);
  const nameless = selections.find(({ names }) => names.length === 0);
  if (nameless) throw new UsageError(`The name of the ${nameless.kind.kind} to delete is required`);
  return selections.flatMap(({ kind, names }) => names.map((name) => ({ kind, name })));
}

async function deleteOne(
  store: Datastore,
  target: DeletionTarget,
  { context, given }: { readonly context: Context; readonly given: Given },
): Promise<ActionResult> {
  const { kind, name } = target;
  const found = await findOne(store, kind, name);
  const [stored, unreadable] = [found.readable[0], found.unreadable[0]];
  const there = stored ?? unreadable;
  if (!there) {
    const left = await afterDelete(store, target, context);
    if (left.note !== undefined) return { action: "deleted", ...left };
    if (given.switches.has("ignore-not-found")) return { action: "not found" };
    throw await notFound(store, target);
  }
  if (target.revision !== undefined && target.revision !== there.revision) {
    throw changedSince(target, target.revision);
  }
  const isForced = given.switches.has("force");
  if (unreadable && !isForced) throw unreadable.failure;
  if (stored && kind.deleteResource) {
    return kind.deleteResource(store, stored, { context, inUse: isForced ? "release" : "refuse" });
  }
  const written = await store.commit([{ kind: "delete", key: there.key, revision: there.revision }]);
  if (!written.ok && written.reason !== "missing") {
    throw lostRace(`Cannot delete ${referenceText(kind, name)}`, written.reason);
  }
  // The record first: a failed deletion then changes nothing, and the next call also finds what a crash left behind.
  const released = await afterDelete(store, target, context);
  return {
    action: "deleted",
    ...joinNotes(unreadable && (kind.deletedUnreadNote ?? DELETED_UNREAD_NOTE), released.note),
  };
}

async function afterDelete(
  store: Datastore,
  { kind, name }: DeletionTarget,
  context: Context,
): Promise<Pick<ActionResult, "note">> {
  return (await kind.afterDelete?.(store, name, context)) ?? {};
}

function joinNotes(...notes: readonly (string | undefined)[]): Pick<ActionResult, "note"> {
  const given = notes.filter((note) => note !== undefined);
  return given.length === 0 ? {} : { note: given.join("; ") };
}

const DELETED_UNREAD_NOTE = "it was unreadable and has been deleted";

function changedSince({ kind, name }: DeletionTarget, revision: string): PluginError {
  return new PluginError(
    "resource-changed",
    `Cannot delete ${referenceText(kind, name)}: it has changed since resourceVersion ${revision}`,
    { details: "get it again and decide again, or leave out resourceVersion" },
  );
}
