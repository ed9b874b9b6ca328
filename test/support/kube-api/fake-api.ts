/**
 * An API server in memory, for unit tests and simulations: objects with UIDs and
 * resourceVersions, lists in pages, watches with a history, conflicts,
 * finalizers, JSON patches. It accepts any resource.
 */

import type { ApiObject } from "../../../src/datastore/kube/api.ts";
import type { KubeClient, KubeRequest, KubeResponse, WatchEvent } from "../../../src/kube/api.ts";
import { FakeObjects, type Query } from "./fake-objects.ts";
import { FakeRequests, type FakeServerOptions } from "./fake-requests.ts";
import { FakeWatches } from "./fake-watches.ts";

export interface FakeApi {
  /** A connection to it; `around` sees every request, and may fail before or after it. */
  connect(around?: Around): KubeClient;
  /** What the server responds, at once. */
  respond(request: KubeRequest): KubeResponse;
  /** The same for a watch, before its events. */
  respondToWatch(query: Query): KubeResponse;
  /**
   * Tells about the events of a watch since the `resourceVersion` of its query, and then about each when it happens, until
   * the returned function is called. `undefined` if it has told why it cannot: the history since then is gone.
   */
  follow(path: string, query: Query, listener: (event: WatchEvent) => void): (() => void) | undefined;
  /** The event that says what a watch has seen: everything up to now. */
  bookmark(): WatchEvent;
  /** Discards the history of changes up to now. */
  forgetHistory(): void;
  /** The resourceVersion of the last change. */
  readonly revision: string;
  /** The state of an object, for a test to look at. */
  object(path: string): ApiObject | undefined;
  /** The objects of a collection, sorted by path. */
  list(collection: string): readonly ApiObject[];
  all(): Iterable<{ readonly path: string; readonly object: ApiObject }>;
}

export type Around = (request: KubeRequest, send: () => KubeResponse) => Promise<KubeResponse>;

export interface FakeApiOptions extends Partial<FakeServerOptions> {
  /** "refused": as by a server before 1.34. */
  readonly watchList?: "served" | "refused";
}

export function startFakeApi({
  now = () => new Date(0),
  rules,
  lag = () => 0,
  watchList = "served",
}: FakeApiOptions = {}): FakeApi {
  const objects = new FakeObjects();
  const requests = new FakeRequests(objects, { now, rules, lag });
  const watches = new FakeWatches(objects, requests, watchList);
  return {
    connect: (around) => ({
      request: async (request) => {
        const send = () => requests.respond(request);
        return around ? around(request, send) : send();
      },
      watch: (path, query, signal) => watches.watch(path, query, signal),
      close: async () => {},
    }),
    respond: (request) => requests.respond(request),
    respondToWatch: (query) => watches.respond(query),
    follow: (path, query, listener) => watches.follow(path, query, listener),
    bookmark: () => watches.bookmark(),
    forgetHistory: () => objects.forgetHistory(),
    get revision() {
      return String(objects.revision);
    },
    object: (path) => objects.get(path)?.object,
    all: () => objects.all(),
    list: (collection) => objects.list(collection, {}).map(({ object }) => object),
  };
}
