/**
 * The orchestrator's API in memory, behind a faulty network. Users change objects at the server itself; processes connect
 * to it by the product's own client.
 */
import type { Datastore } from "../../src/datastore/datastore.ts";
import type { ApiObject } from "../../src/datastore/kube/api.ts";
import { openCopyingStore } from "../../src/datastore/kube/copying-store.ts";
import { productMapping } from "../../src/datastore/kube/product-mapping.ts";
import { openKubeStore } from "../../src/datastore/kube/store.ts";
import type { ErrorKind } from "../../src/errors.ts";
import type { KubeClient, KubeRequest, KubeResponse, WatchEvent } from "../../src/kube/api.ts";
import { type FakeApi, type FakeApiOptions, startFakeApi } from "../../test/support/kube-api/fake-api.ts";
import { connectionError } from "../faults/connection-error.ts";
import { FaultyServer } from "../faults/faulty-server.ts";
import { type FaultyNetwork, RequestFailed } from "../faults/network.ts";
import type { FaultyStream } from "../faults/stream.ts";
import type { SimulatedProcess } from "../schedule/process.ts";
import { type ApiServer, connectClient } from "./simulated-kube-client.ts";

type Query = Readonly<Record<string, string>>;
/** An object that a user gives. */
interface GivenObject {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

/** One of several servers, whose copies of each collection may be behind: by so many changes, less one. */
const LONGEST_LAG = 64;
/** How often a server tells its watches how far they are, also if nothing has changed. */
const BOOKMARK_MILLISECONDS = 60_000;

/** `rules`: what the server does besides storing; absent: nothing. */
export type SimulatedApiOptions = Omit<FakeApiOptions, "now">;

export class SimulatedApi extends FaultyServer implements ApiServer {
  private readonly api: FakeApi;
  private readonly bookmarked = new Set<FaultyStream<WatchEvent>>();
  private busyUntil = 0;

  constructor(network: FaultyNetwork, options: SimulatedApiOptions = {}) {
    super(network);
    const lag = (revision: number, collection: string) => (revision + collection.length) % LONGEST_LAG;
    this.api = startFakeApi({ now: () => network.scheduler.date, lag, ...options });
    this.sendBookmarks();
  }

  connect(process: SimulatedProcess, place: string, unavailableAs: ErrorKind = "api-unavailable"): KubeClient {
    return connectClient(this, { process, place, network: this.network, unavailableAs });
  }

  /** The product's datastore on this API, with a connection of its own. */
  connectStore(process: SimulatedProcess, place: string): Datastore {
    const api = this.connect(process, place, "datastore-unavailable");
    const marks = process.random.fork("marks");
    const mappings = productMapping(() => String(marks.next()));
    return openKubeStore({ api, mappings, close: () => api.close(), elapsed: process.elapsed });
  }

  /** The same for a process that stays and serves many calls: it copies what they read. */
  connectCopyingStore(process: SimulatedProcess, place: string): Datastore {
    const api = this.connect(process, place, "datastore-unavailable");
    const [marks, retries] = [process.random.fork("marks"), process.random.fork("copies")];
    const means = { api, mappings: productMapping(() => String(marks.next())), elapsed: process.elapsed };
    return openCopyingStore((observer) => openKubeStore({ ...means, observer, close: () => api.close() }), {
      clock: { now: process.elapsed, wait: process.wait },
      random: () => retries.next(),
    });
  }

  /** Of a user who nothing can keep from the server. */
  get user(): KubeClient {
    return this.api.connect();
  }

  get userStore(): Datastore {
    return openKubeStore({
      api: this.user,
      mappings: productMapping(() => `user-${this.revision}`),
      close: async () => {},
    });
  }

  /** Of the last change. */
  get revision(): string {
    return this.api.revision;
  }

  object(path: string): ApiObject | undefined {
    return this.api.object(path);
  }

  /** By path. */
  all(): Iterable<{ readonly path: string; readonly object: ApiObject }> {
    return this.api.all();
  }

  /** `/api/v1/pods`, of all namespaces, or `/api/v1/namespaces/NAME/pods`. */
  list(collection: string): readonly ApiObject[] {
    return this.api.list(collection);
  }

  /** As a user: at once, and it must succeed. */
  create(collection: string, object: GivenObject): ApiObject {
    return this.do({ method: "POST", path: collection, body: JSON.stringify(object) });
  }

  replace(path: string, object: GivenObject): ApiObject {
    return this.do({ method: "PUT", path, body: JSON.stringify(object) });
  }

  /** A merge patch: `null` removes a field. */
  patch(path: string, patch: object): ApiObject {
    const contentType = "application/merge-patch+json";
    return this.do({ method: "PATCH", path, body: JSON.stringify(patch), contentType });
  }

  /** It stays, marked, while it has finalizers. Nothing if there is no such object. */
  remove(path: string): void {
    if (this.object(path)) this.do({ method: "DELETE", path });
  }

  /** It only is marked, until `remove()`: as a pod whose containers still run. */
  startRemoval(path: string): void {
    if (this.object(path)) this.do({ method: "DELETE", path, body: JSON.stringify({ gracePeriodSeconds: 30 }) });
  }

  /** Asks every client to come again later, for so long: as a server does that has just started. */
  beBusy(milliseconds: number): void {
    this.busyUntil = Math.max(this.busyUntil, this.network.scheduler.now + milliseconds);
  }

  /** Whether a request that arrives now would be executed. */
  isAnswering(): boolean {
    const { now } = this.network.scheduler;
    return this.isUp() && this.hangsUntil() <= now && this.busyUntil <= now;
  }

  retryAfter(): number | undefined {
    return this.network.scheduler.now < this.busyUntil ? 1 : undefined;
  }

  compact(): void {
    this.api.forgetHistory();
  }

  /** It has no history of the time before. */
  override restart(milliseconds: number): void {
    super.restart(milliseconds);
    this.compact();
  }

  respond(request: KubeRequest): ReturnType<FakeApi["respond"]> {
    return this.api.respond(request);
  }

  /** Executed at the server. */
  startWatch(path: string, query: Query, stream: FaultyStream<WatchEvent>): KubeResponse {
    const response = this.api.respondToWatch(query);
    if (response.status !== 200) return response;
    const forget = this.api.follow(path, query, (event) => stream.send(event));
    if (forget === undefined) {
      stream.end();
      return response;
    }
    const hasBookmarks = query["allowWatchBookmarks"] === "true";
    if (hasBookmarks) this.bookmarked.add(stream);
    const end = this.network.scheduler.after(Number(query["timeoutSeconds"]) * 1_000, () => {
      if (hasBookmarks) stream.send(this.api.bookmark());
      stream.end();
    });
    stream.onClose(() => {
      end();
      forget();
      this.bookmarked.delete(stream);
    });
    return response;
  }

  protected brokenWatch(): Error {
    return connectionError(new RequestFailed("reset", "unknown"));
  }

  private do(request: KubeRequest): ApiObject {
    const { status, text } = this.api.respond(request);
    if (status >= 300) throw new Error(`Cannot ${request.method} ${request.path}: ${text}`);
    return JSON.parse(text);
  }

  private sendBookmarks(): void {
    const bookmark = this.api.bookmark();
    for (const stream of this.bookmarked) stream.send(bookmark);
    this.network.scheduler.after(BOOKMARK_MILLISECONDS, () => this.sendBookmarks());
  }
}
