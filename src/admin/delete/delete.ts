import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { withDatastore } from "../datastore/open.ts";
import { reportNothingFound } from "../datastore/report-nothing-found.ts";
import type { ExitCode, Given } from "../main/command.ts";
import type { Call, Clock, DatastoreAccess, Host, Terminal } from "../main/context.ts";
import type { ActionResult } from "../resources/action-result.ts";
import { surroundingsOf } from "../resources/dry-run.ts";
import { notFound } from "../resources/find.ts";
import { forEachResource } from "../resources/for-each-resource.ts";
import { lostRace } from "../resources/lost-race.ts";
import { withPolicyNotes } from "../resources/policy-notes.ts";
import { referenceText } from "../resources/reference.ts";
import { findOne } from "../resources/stored.ts";
import { type DeletionTarget, deletionTargets } from "./deletion-targets.ts";
import { refuseInUse } from "./uses.ts";

export async function run(context: DatastoreAccess & Host & Clock, given: Given): Promise<ExitCode> {
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
}

const ABSENCE_SWITCHES = ["ignore-not-found", "skip-not-exists"];

export async function deleteOne(
  store: Datastore,
  target: DeletionTarget,
  { context, given }: { readonly context: Call & Terminal & Clock; readonly given: Given },
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
  context: Call & Terminal & Clock,
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
