/**
 * `get -w`: prints the resources that were found, then each one that changes.
 * A lost connection is reported on stderr, and the watch goes on when the
 * datastore is back.
 */
import type { Datastore } from "../../datastore/datastore.ts";
import type { KindSource } from "../../datastore/replica/kinds.ts";
import { startReplica } from "../../datastore/replica.ts";
import type { PluginError } from "../../errors.ts";
import type { Selector } from "../../selector/selector.ts";
import { type Context, EXIT_OK, type ExitCode, type Given } from "../command.ts";
import { Interruption } from "../interruption.ts";
import { reportError } from "../report-error.ts";
import { searchedNamespace } from "./find.ts";
import { isSelected } from "./label-selector.ts";
import { EVENTS, type ResourcePrinter, type WatchEvent } from "./print.ts";
import type { Selection } from "./reference.ts";
import { decodeEntry, type Stored, withInheritedLabels } from "./stored.ts";

interface Watched {
  readonly selections: readonly Selection[];
  readonly selector: Selector | undefined;
  /** The resources at the start. */
  readonly found: readonly Stored[];
  readonly printer: ResourcePrinter;
  readonly context: Context;
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
  const replica = startReplica<Record<string, Stored>>(store, sourcesOf(watched), {
    signal,
    watches: "per kind",
    report,
  });
  for await (const { snapshot, changes } of replica.updates()) {
    const changed = Object.values(changes).flat();
    const gone = isStarted ? [] : [...shown.keys()].filter((key) => !isHeld(Object.values(snapshot), key));
    const states = new Map<string, Stored | undefined>(gone.map((key) => [key, undefined]));
    const present = changed.flatMap((change) => (change.kind === "put" ? change.value : []));
    for (const { kind, key } of changed) if (kind === "delete") states.set(key, undefined);
    for (const stored of await withInheritedLabels(store, present)) {
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
    if (before?.revision === stored.revision) return [];
    return [{ stored, event: before === undefined ? EVENTS.put : EVENTS.change }];
  });
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
