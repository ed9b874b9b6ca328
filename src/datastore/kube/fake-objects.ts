/** The objects of an API server in memory, by collection, and what has changed. */
import type { WatchEvent } from "../../kube/api.ts";
import type { ApiObject } from "./api.ts";
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

type Listener = (change: Change) => void;

export class FakeObjects {
  revision = 100;
  forgottenUntil = 0;
  private readonly objects = new Map<string, Stored>();
  /** An object of a namespace is in two: of its namespace, and of all. */
  private readonly collections = new Map<string, Map<string, Stored>>();
  private readonly listeners = new Map<string, Set<Listener>>();
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

  /** Sorted by path. `revision`: a former one, of which nothing is forgotten. */
  list(collection: string, query: Query, revision = this.revision): readonly Stored[] {
    const members = new Map(this.collections.get(collection));
    for (const { stored, before } of (this.changesAfter(revision) ?? []).toReversed()) {
      if (!collectionsOf(stored.path).includes(collection)) continue;
      if (before === undefined) members.delete(stored.path);
      else members.set(stored.path, before);
    }
    return [...members.values()]
      .filter(({ object }) => isSelected(object, query))
      .sort((left, right) => (left.path < right.path ? -1 : 1));
  }

  /** `undefined` if some of them are forgotten. */
  changesAfter(revision: number): readonly Change[] | undefined {
    if (revision < this.forgottenUntil) return undefined;
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

  forgetHistory(): void {
    this.history = [];
    this.forgottenUntil = this.revision;
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
