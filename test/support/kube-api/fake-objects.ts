/** The objects of an API server in memory, by collection, and what has changed. */

import type { ApiObject } from "../../../src/datastore/kube/api.ts";
import type { WatchEvent } from "../../../src/kube/api.ts";
import type { FakeObject } from "./fake-patches.ts";

export type Query = Readonly<Record<string, string>>;

export interface Stored {
  readonly path: string;
  /** The server has given it the metadata that every object has. */
  readonly object: FakeObject & ApiObject;
  /** As JSON. */
  readonly text: string;
}

export interface Change {
  readonly revision: number;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly stored: Stored;
  readonly before: Stored | undefined;
}

/** How many of the changes that one server has forgotten another may have. */
const HISTORY_OF_OTHERS = 64;

type Listener = (change: Change) => void;

export class FakeObjects {
  revision = 100;
  forgottenUntil = 0;
  private readonly objects = new Map<string, Stored>();
  /** An object of a namespace is in two: of its namespace, and of all. */
  private readonly collections = new Map<string, Map<string, Stored>>();
  private readonly listeners = new Map<string, Set<Listener>>();
  private readonly begins = new Map<string, number>();
  private history: Change[] = [];

  get(path: string): Stored | undefined {
    return this.objects.get(path);
  }

  record(type: Change["type"], path: string, object: FakeObject): Stored {
    this.revision += 1;
    const versioned = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.revision) } };
    const stored = { path, object: versioned as FakeObject & ApiObject, text: JSON.stringify(versioned) };
    const change = { revision: this.revision, type, stored, before: this.objects.get(path) };
    if (type === "DELETED") this.objects.delete(path);
    else this.objects.set(path, stored);
    for (const collection of collectionsOf(path)) {
      const members = this.collections.get(collection) ?? new Map<string, Stored>();
      if (type === "DELETED") members.delete(path);
      else members.set(path, stored);
      this.collections.set(collection, members);
    }
    this.history.push(change);
    for (const collection of collectionsOf(path)) {
      for (const tell of [...(this.listeners.get(collection) ?? [])]) tell(change);
    }
    return stored;
  }

  all(): Iterable<Stored> {
    return this.objects.values();
  }

  /** Sorted by path. `revision`: a former one. */
  list(collection: string, query: Query, revision = this.revision): readonly Stored[] {
    const members = new Map(this.collections.get(collection));
    for (const { stored, before } of this.historyAfter(revision).toReversed()) {
      if (!collectionsOf(stored.path).includes(collection)) continue;
      if (before === undefined) members.delete(stored.path);
      else members.set(stored.path, before);
    }
    return [...members.values()]
      .filter(({ object }) => isSelected(object, query))
      .sort((left, right) => (left.path < right.path ? -1 : 1));
  }

  /** `undefined` if some of them are forgotten: the history of a collection begins when somebody first asks for it. */
  changesAfter(revision: number, collection: string): readonly Change[] | undefined {
    return revision < this.open(collection) ? undefined : this.historyAfter(revision);
  }

  /** Returns the revision from which the server has the history of the collection: each has its own. */
  open(collection: string): number {
    const begin = this.begins.get(collection) ?? (this.forgottenUntil === 0 ? 0 : this.revision);
    this.begins.set(collection, begin);
    return begin;
  }

  /** Also what is forgotten, as far as another server still has it. */
  historyAfter(revision: number): readonly Change[] {
    // Every change has a revision of its own.
    const first = this.history[0]?.revision ?? this.revision + 1;
    return this.history.slice(Math.max(0, revision - first + 1));
  }

  onChange(collection: string, listener: Listener): () => void {
    const listeners = this.listeners.get(collection) ?? new Set();
    this.listeners.set(collection, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  /** What a watch sees of a change: with a selector, an object comes and goes also without being created or deleted. */
  eventOf({ type, stored, before }: Change, collection: string, query: Query): WatchEvent | undefined {
    if (!collectionsOf(stored.path).includes(collection)) return undefined;
    const isHere = type !== "DELETED" && isSelected(stored.object, query);
    const wasHere = before !== undefined && isSelected(before.object, query);
    if (isHere) return { type: wasHere ? "MODIFIED" : "ADDED", text: stored.text };
    return wasHere ? { type: "DELETED", text: stored.text } : undefined;
  }

  /** The revision of a server whose copy is behind by so many changes, if it still can be. */
  copiedRevision(lag: number): number {
    return Math.max(this.revision - lag, (this.history[0]?.revision ?? this.revision + 1) - 1);
  }

  forgetHistory(): void {
    this.history = this.history.slice(-HISTORY_OF_OTHERS);
    this.forgottenUntil = this.revision;
    this.begins.clear();
  }
}

/** Its own, and that of all namespaces. */
function collectionsOf(path: string): readonly string[] {
  const parent = path.slice(0, path.lastIndexOf("/"));
  const everywhere = parent.replace(/\/namespaces\/[^/]+(?=\/)/, "");
  return everywhere === parent ? [parent] : [parent, everywhere];
}

function isSelected(object: FakeObject, { labelSelector, fieldSelector }: Query): boolean {
  if (labelSelector === undefined && fieldSelector === undefined) return true;
  const labels = (object.metadata["labels"] ?? {}) as Readonly<Record<string, string>>;
  const matches = (selector: string | undefined, fieldOf: (name: string) => unknown) =>
    (selector ?? "").split(",").every((term) => {
      const [name = "", value] = term.split("=");
      return term === "" || fieldOf(name) === value;
    });
  return (
    matches(labelSelector, (name) => labels[name]) &&
    matches(fieldSelector, (name) => name.split(".").reduce<unknown>((part, step) => memberOf(part, step), object))
  );
}

function memberOf(value: unknown, name: string): unknown {
  return (value as Readonly<Record<string, unknown>> | undefined)?.[name];
}
