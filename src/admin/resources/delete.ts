import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import type { ResourceName } from "../../model/keys.ts";
import { type Command, type Context, type Given, UsageError } from "../command.ts";
import { withDatastore } from "../datastore/open.ts";
import type { AdminKind } from "../kinds/kind.ts";
import type { Done } from "./done.ts";
import { forEachResource } from "./each.ts";
import { notFound } from "./get.ts";
import { lostRace } from "./lost-race.ts";
import { KIND_WORDS, NAMESPACE_OPTION, parseSelections, referenceText } from "./reference.ts";
import { FILE_OPTION, readGivenResources } from "./sources.ts";
import { findOne } from "./stored.ts";

/** A resource to delete. */
interface Doomed {
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
    "A pool that addresses are in use of is not deleted unless --force is given; the message says who uses it.",
    "With --force running workloads keep their addresses, which then lie in no pool.",
    "A pool is disabled first, then its blocks are taken from their nodes, then it goes.",
    "With a node its claims on blocks go: an empty block is free again, one in use becomes nobody's and goes with its last address.",
    "If claims of a node are left whose record is gone already, they go.",
    "What cannot be read is deleted with --force only; of a pool nobody can tell then whether it is in use.",
  ].join("\n"),
  operands: "KIND NAME… | KIND/NAME…",
  completes: KIND_WORDS,
  options: [
    FILE_OPTION,
    NAMESPACE_OPTION,
    { name: "force", summary: "Delete a pool although its addresses are in use, or what cannot be read" },
    { name: "ignore-not-found", summary: "What is gone already is no failure" },
  ],
  needsDatastore: true,
  examples: [
    { command: "delete ippool blue", does: "One pool" },
    { command: "delete -f pools.yaml --ignore-not-found", does: "All that a file names" },
    { command: "delete node n1 --force", does: "Also when it cannot be read" },
  ],
  async run(context, given) {
    const all = await doomedOf(context, given);
    return withDatastore(context, given, (store) =>
      forEachResource(context, given, { all, act: (each) => deleteOne(store, each, { context, given }) }),
    );
  },
};

async function doomedOf(context: Context, given: Given): Promise<readonly Doomed[]> {
  if (given.lists.has(FILE_OPTION.name)) {
    if (given.operands.length > 0) throw new UsageError("Resources are named by -f or by KIND and NAME, not by both");
    return (await readGivenResources(context, given)).map(({ kind, name, resource }) => {
      const revision = resource.metadata.resourceVersion;
      return { kind, name, ...(revision === undefined ? {} : { revision }) };
    });
  }
  const selections = parseSelections(given);
  const nameless = selections.find(({ names }) => names.length === 0);
  if (nameless) throw new UsageError(`The name of the ${nameless.kind.kind} to delete is needed`);
  return selections.flatMap(({ kind, names }) => names.map((name) => ({ kind, name })));
}

async function deleteOne(
  store: Datastore,
  doomed: Doomed,
  { context, given }: { readonly context: Context; readonly given: Given },
): Promise<Done> {
  const { kind, name } = doomed;
  const found = await findOne(store, kind, name);
  const [stored, unreadable] = [found.readable[0], found.unreadable[0]];
  const there = stored ?? unreadable;
  if (!there) {
    const left = await afterDelete(store, doomed, context);
    if (left.note !== undefined) return { action: "deleted", ...left };
    if (given.switches.has("ignore-not-found")) return { action: "not there" };
    throw await notFound(store, doomed);
  }
  if (doomed.revision !== undefined && doomed.revision !== there.revision) {
    throw changedSince(doomed, doomed.revision);
  }
  const insists = given.switches.has("force");
  if (unreadable && !insists) throw unreadable.failure;
  if (stored && kind.deleteResource) {
    return kind.deleteResource(store, stored, { context, inUse: insists ? "release" : "refuse" });
  }
  const written = await store.commit([{ kind: "delete", key: there.key, revision: there.revision }]);
  if (!written.ok && written.reason !== "missing") {
    throw lostRace(`Cannot delete ${referenceText(kind, name)}`, written.reason);
  }
  // The record first: a deletion that is refused takes nothing, and what a crash leaves the next call finds without it.
  const released = await afterDelete(store, doomed, context);
  return { action: "deleted", ...joinNotes(unreadable && (kind.noteOfUnread ?? NOTE_OF_UNREAD), released.note) };
}

async function afterDelete(store: Datastore, { kind, name }: Doomed, context: Context): Promise<Pick<Done, "note">> {
  return (await kind.afterDelete?.(store, name, context)) ?? {};
}

function joinNotes(...notes: readonly (string | undefined)[]): Pick<Done, "note"> {
  const given = notes.filter((note) => note !== undefined);
  return given.length === 0 ? {} : { note: given.join("; ") };
}

const NOTE_OF_UNREAD = "it could not be read, and was deleted unread";

function changedSince({ kind, name }: Doomed, revision: string): PluginError {
  return new PluginError(
    "resource-changed",
    `Cannot delete ${referenceText(kind, name)}: it was changed since resourceVersion ${revision}`,
    { details: "get it again and decide again, or leave out resourceVersion" },
  );
}
