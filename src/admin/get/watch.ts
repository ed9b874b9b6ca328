/**
 * `get -w`: prints the resources that were found, then each one that changes.
 * A lost connection is reported on stderr, and the watch goes on when the
 * datastore is back.
 */

import type { Datastore, Entry } from "../../datastore/datastore.ts";
import type { KindSource } from "../../datastore/replica/kinds.ts";
import { startReplica } from "../../datastore/replica.ts";
import type { PluginError } from "../../errors.ts";
import type { Resource } from "../../model/resource.ts";
import type { Selector } from "../../selector/selector.ts";
import type { AdminKind } from "../kinds/kind.ts";
import { EXIT_OK, type ExitCode, type Given } from "../main/command.ts";
import type { ClusterAccess } from "../main/context.ts";
import { Interruption } from "../main/interruption.ts";
import { reportError } from "../main/report-error.ts";
import { searchedNamespace } from "../resources/find.ts";
import { isSelected, looksAtLabels } from "../resources/label-selector.ts";
import type { Selection } from "../resources/reference.ts";
import { decodeEntry, giversOf, inheriting, labelsOfStored, type Stored } from "../resources/stored.ts";
import { EVENTS, type ResourcePrinter, type WatchEvent } from "./print.ts";

interface Watched {
  readonly selections: readonly Selection[];
  readonly selector: Selector | undefined;
  /** The resources at the start. */
  readonly found: readonly Stored[];
  readonly printer: ResourcePrinter;
  readonly context: ClusterAccess;
  readonly given: Given;
}

type Sources = Readonly<Record<string, KindSource<Stored>>>;

export async function watchResources(store: Datastore, watched: Watched): Promise<ExitCode> {
  const { found, printer, context } = watched;
  const print = (events: readonly WatchEvent[]) => {
    if (events.length > 0) context.stdout(printer.events(events));
  };
  const shown = new Map(found.map((stored) => [stored.key, stored]));
  print(found.map((stored) => ({ stored, event: EVENTS.put })));

  const signal = AbortSignal.any([context.signal, context.outputClosed]);
  let isStarted = false;
  // Those that were unreadable at the start have been reported.
  const report = (problem: PluginError) => {
    if (isStarted || problem.kind !== "record-malformed") reportError(context, problem);
  };
  const kinds = [...new Set(watched.selections.map(({ kind }) => kind))];
  const givers = looksAtLabels(watched.given) ? giversOf(kinds) : [];
  const lists = new Map<AdminKind, readonly Resource[]>();
  const sources: Sources = { ...sourcesOf(watched), ...giverSources(givers) };
  const replica = startReplica<Record<string, Stored>>(store, sources, {
    signal,
    watches: "per kind",
    report,
  });
  for await (const { snapshot, changes } of replica.updates()) {
    const snapshots = kinds.flatMap(({ kind }) => snapshot[kind] ?? []);
    const changed = kinds.flatMap(({ kind }) => changes[kind] ?? []);
    const gone = isStarted ? [] : [...shown.keys()].filter((key) => !isHeld(snapshots, key));
    const states = new Map<string, Stored | undefined>(gone.map((key) => [key, undefined]));
    for (const kind of givers) {
      if (lists.has(kind) && (changes[giverSource(kind)] ?? []).length === 0) continue;
      lists.set(
        kind,
        Array.from(snapshot[giverSource(kind)] ?? [], ([, { resource }]) => resource),
      );
    }
    // What they inherit may have changed.
    const heirs = kinds.filter((kind) => giversOf([kind]).some((from) => changes[giverSource(from)]?.length));
    const again = heirs.flatMap(({ kind }) => Array.from(snapshot[kind] ?? [], ([, stored]) => stored));
    const present = changed.flatMap((change) => (change.kind === "put" ? change.value : []));
    for (const { kind, key } of changed) if (kind === "delete") states.set(key, undefined);
    for (const each of [...again, ...present]) {
      const stored = inheriting(each, lists);
      states.set(stored.key, isSelected(stored, watched.selector) ? stored : undefined);
    }
    print(eventsOf(states, shown));
    isStarted = true;
  }
  await replica.ended;
  return context.signal.reason instanceof Interruption ? context.signal.reason.exitCode : EXIT_OK;
}

function isHeld(snapshots: readonly { revisionOf(key: string): string | undefined }[], key: string): boolean {
  return snapshots.some((snapshot) => snapshot.revisionOf(key) !== undefined);
}

/** What is new about these resources, in the order of their keys; `shown` is what was printed last, and is updated. */
function eventsOf(states: ReadonlyMap<string, Stored | undefined>, shown: Map<string, Stored>): readonly WatchEvent[] {
  const keys = [...states.keys()].sort();
  return keys.flatMap((key): WatchEvent[] => {
    const [before, stored] = [shown.get(key), states.get(key)];
    if (stored === undefined) shown.delete(key);
    else shown.set(key, stored);
    if (stored === undefined) return before === undefined ? [] : [{ stored: before, event: EVENTS.delete }];
    if (before?.revision === stored.revision && hasSameLabels(before, stored)) return [];
    return [{ stored, event: before === undefined ? EVENTS.put : EVENTS.change }];
  });
}

function hasSameLabels(left: Stored, right: Stored): boolean {
  return Bun.deepEquals(labelsOfStored(left), labelsOfStored(right));
}

/** Beside the source of the same kind, if its resources are shown too: that one may be only about some names. */
function giverSources(givers: readonly AdminKind[]): Sources {
  return Object.fromEntries(
    givers.map((kind) => [
      giverSource(kind),
      { prefix: kind.prefix(), decode: (entry: Entry) => decodeEntry(kind, entry) },
    ]),
  );
}

function giverSource({ kind }: AdminKind): string {
  return `labels of ${kind}`;
}

/** One source for each kind: a kind may be named several times, each time with other names. */
function sourcesOf({ selections, given }: Watched): Sources {
  const kinds = [...new Set(selections.map(({ kind }) => kind))];
  return Object.fromEntries(
    kinds.map((kind) => {
      const own = selections.filter((selection) => selection.kind === kind);
      const all = own.find(({ names }) => names.length === 0);
      const keys = new Set(own.flatMap(({ names }) => names.map((name) => kind.key(name))));
      const source: KindSource<Stored> = {
        prefix: kind.prefix(all && searchedNamespace(all, given)),
        decode: (entry) => (all || keys.has(entry.key) ? decodeEntry(kind, entry) : undefined),
      };
      return [kind.kind, source];
    }),
  );
}
