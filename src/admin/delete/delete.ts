import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { reportNothingFound } from "../datastore/notice.ts";
import { withDatastore } from "../datastore/open.ts";
import type { Command, Context, Given } from "../main/command.ts";
import { FILE_OPTIONS } from "../manifest/sources.ts";
import type { ActionResult } from "../resources/action-result.ts";
import { DRY_RUN_OPTION, surroundingsOf } from "../resources/dry-run.ts";
import { ALL_NAMESPACES_OPTION, notFound } from "../resources/find.ts";
import { forEachResource } from "../resources/for-each-resource.ts";
import { SELECTOR_OPTION } from "../resources/label-selector.ts";
import { lostRace } from "../resources/lost-race.ts";
import { withPolicyNotes } from "../resources/policy-notes.ts";
import { KIND_WORDS, NAMESPACE_OPTION, referenceText } from "../resources/reference.ts";
import { findOne } from "../resources/stored.ts";
import { type DeletionTarget, deletionTargets } from "./deletion-targets.ts";
import { refuseInUse } from "./uses.ts";

export const deleteCommand: Command = {
  kind: "command",
  name: "delete",
  summary: "Delete resources",
  description: [
    "A pool with addresses in use, a node with workloads, the endpoint of a workload and a profile of endpoints are not deleted, and the",
    "error lists who uses them. With --force they are deleted: running workloads keep their addresses, those of a pool then outside all",
    "pools; endpoints without their profile have only what policies allow.",
    "Deleting a pool disables it first, then releases its blocks from their nodes, then deletes it.",
    "Deleting a node also releases its block claims. Leftover block claims of a deleted node are removed too.",
    "Its empty blocks are deleted; blocks in use stay without a node and are deleted when they are empty and have rested.",
    "With -l or --all, resources of the namespace are deleted, or of all namespaces with -A.",
    "If deleting policies, profiles, tiers, network sets, labels or host endpoints closes or opens workloads or hosts, or changes",
    "whom their rules match, stderr says which.",
    "An unreadable resource is deleted only with --force; whether an unreadable pool is in use is then not checked.",
  ].join("\n"),
  operands: "KIND NAME… | KIND/NAME… | KIND -l SELECTOR | KIND --all",
  completes: KIND_WORDS,
  completesNames: "many",
  options: [
    ...FILE_OPTIONS,
    SELECTOR_OPTION,
    { name: "all", summary: "Delete all resources of the kind" },
    NAMESPACE_OPTION,
    ALL_NAMESPACES_OPTION,
    DRY_RUN_OPTION,
    {
      name: "force",
      summary: "Delete pools, nodes, endpoints and profiles even if they are in use, and unreadable resources",
    },
    { name: "ignore-not-found", summary: "Do not fail if a resource does not exist" },
    { name: "skip-not-exists", letter: "s", summary: "The same as --ignore-not-found" },
  ],
  needsDatastore: true,
  examples: [
    { command: "delete ippool blue", does: "Delete a pool" },
    { command: "delete -f pools.yaml --ignore-not-found", does: "Delete the resources in a file" },
    { command: "delete nodes -l rack=a --dry-run", does: "Show which nodes would be deleted" },
    { command: "delete node n1 --force", does: "Delete a node even if it is unreadable" },
  ],
  async run(context, given) {
    const search = await deletionTargets(context, given);
    return withDatastore(context, given, async (store) => {
      const work = surroundingsOf(given, { store, context });
      const all = await search(store);
      if (all.length === 0) await reportNothingFound(context, store);
      return withPolicyNotes(work.store, { context, given, kinds: new Set(all.map(({ kind }) => kind)) }, (noted) =>
        forEachResource(context, given, {
          all,
          act: (each) => deleteOne(noted, each, { context: work.context, given }),
        }),
      );
    });
  },
};

const ABSENCE_SWITCHES = ["ignore-not-found", "skip-not-exists"];

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
    if (ABSENCE_SWITCHES.some((name) => given.switches.has(name))) return { action: "not found" };
    throw await notFound(store, target);
  }
  if (target.revision !== undefined && target.revision !== there.revision) {
    throw changedSince(target, target.revision);
  }
  const isForced = given.switches.has("force");
  if (unreadable && !isForced) throw unreadable.failure;
  if (stored && kind.usersOf && !isForced) {
    const users = await kind.usersOf(store, stored);
    const remedy = kind.remedyIfInUse ?? "use --force";
    if (users.length > 0) throw refuseInUse(`Cannot delete ${referenceText(kind, name)}`, users, remedy);
  }
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
    ...joinNotes(
      unreadable && (kind.deletedUnreadNote ?? DELETED_UNREAD_NOTE),
      released.note,
      await kind.noteOfRest?.(store, name),
    ),
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
