/** The watches of an API server in memory. */

import type { KubeResponse, WatchEvent } from "../../../src/kube/api.ts";
import { requireOk } from "../../../src/kube/require-ok.ts";
import type { Change, FakeObjects, Query } from "./fake-objects.ts";
import { type FakeRequests, status } from "./fake-requests.ts";

export class FakeWatches {
  constructor(
    private readonly objects: FakeObjects,
    private readonly requests: FakeRequests,
    private readonly watchList: "served" | "refused",
  ) {}

  respond(query: Query): KubeResponse {
    return query["sendInitialEvents"] === undefined || this.watchList === "served"
      ? { status: 200, text: "" }
      : status(422, "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled");
  }

  follow(path: string, query: Query, listener: (event: WatchEvent) => void): (() => void) | undefined {
    const { objects } = this;
    const tell = (change: Change) => {
      const event = objects.eventOf(change, path, query);
      if (event) listener(event);
    };
    const begins = query["sendInitialEvents"] === "true";
    const from = begins ? this.tellList(path, query, listener) : Number(query["resourceVersion"]);
    if (begins && from > objects.revision) listener(failed(504));
    else {
      // The copy of a server that has told a list goes on, whatever others have forgotten.
      const missed = begins ? objects.historyAfter(from) : objects.changesAfter(from, path);
      if (missed === undefined) listener(failed(410));
      else {
        missed.forEach(tell);
        return objects.onChange(path, tell);
      }
    }
    return undefined;
  }

  async *watch(path: string, query: Query, signal: AbortSignal): AsyncGenerator<WatchEvent> {
    requireOk(this.respond(query), { method: "GET", path, query: { ...query, watch: "1" } });
    const due: WatchEvent[] = [];
    let wake = () => {};
    const forget = this.follow(path, query, (event) => {
      due.push(event);
      wake();
    });
    if (forget === undefined) return yield* due;
    signal.addEventListener("abort", () => wake(), { once: true });
    try {
      yield { type: "OPENED", text: "{}" };
      while (!signal.aborted) {
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        if (due.length === 0) await promise;
        for (let next = due.shift(); next !== undefined && !signal.aborted; next = due.shift()) yield next;
        if (query["allowWatchBookmarks"] === "true" && !signal.aborted) yield this.bookmark();
      }
    } finally {
      forget();
    }
  }

  bookmark(revision = this.objects.revision, more = {}): WatchEvent {
    // Of an object of the kind that is watched, a real server fills only this field.
    const metadata = { resourceVersion: String(revision), creationTimestamp: null, ...more };
    return { type: "BOOKMARK", text: JSON.stringify({ metadata }) };
  }

  /** Returns the revision from which the watch goes on. */
  private tellList(path: string, query: Query, listener: (event: WatchEvent) => void): number {
    const revision = this.requests.listedRevision(path, query);
    if (revision > this.objects.revision) return revision;
    for (const { text } of this.objects.list(path, query, revision)) listener({ type: "ADDED", text });
    listener(this.bookmark(revision, { annotations: { "k8s.io/initial-events-end": "true" } }));
    return revision;
  }
}

function failed(code: number): WatchEvent {
  return { type: "ERROR", text: JSON.stringify({ kind: "Status", code }) };
}
