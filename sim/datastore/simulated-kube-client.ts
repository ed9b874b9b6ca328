/** A connection of one process to the simulated API. It repeats and gives up as `src/kube/client.ts` does. */
import type { ErrorKind, PluginError } from "../../src/errors.ts";
import type { KubeClient, KubeRequest, KubeResponse, WatchEvent } from "../../src/kube/api.ts";
import { failureOfConnection, unavailable } from "../../src/kube/failure.ts";
import { connectionError } from "../faults/connection-error.ts";
import type { FaultyServer } from "../faults/faulty-server.ts";
import { type FaultyNetwork, RequestFailed } from "../faults/network.ts";
import { persist } from "../faults/persist.ts";
import type { FaultyStream } from "../faults/stream.ts";
import { untilAborted } from "../faults/until-aborted.ts";
import type { SimulatedProcess } from "../schedule/process.ts";

const WATCH_SECONDS = 300;
const WATCH_GRACE_SECONDS = 30;

/** What the server does with a request that arrives. */
export interface ApiServer extends FaultyServer {
  respond(request: KubeRequest): KubeResponse;
  startWatch(path: string, query: Readonly<Record<string, string>>, stream: FaultyStream<WatchEvent>): void;
}

interface ClientMeans {
  readonly process: SimulatedProcess;
  readonly place: string;
  readonly network: FaultyNetwork;
  readonly unavailableAs: ErrorKind;
}

export class SimulatedKubeClient implements KubeClient {
  private readonly closing = new AbortController();

  constructor(
    private readonly server: ApiServer,
    private readonly means: ClientMeans,
  ) {}

  async request(request: KubeRequest): Promise<KubeResponse> {
    const { process, place, network, unavailableAs } = this.means;
    const { server } = this;
    const isRead = request.method === "GET";
    server.traffic.count(place, isRead ? "read" : "write");
    const isStopped = () => this.closing.signal.aborted || request.signal?.aborted === true;
    const persistence = {
      firstAttemptMilliseconds: 5_000,
      mayRepeat: ({ effect }: RequestFailed) =>
        !isStopped() && request.attempt !== "once" && (effect === "none" || isRead || request.attempt === "retry"),
      failureOf: (failure: RequestFailed) => failureOf(failure, unavailableAs),
    };
    const send = (patience: number) =>
      untilAborted(
        network.request(process, place, server, () => server.respond(request), patience),
        [this.closing.signal, request.signal],
      );
    return persist(process, persistence, send);
  }

  async *watch(path: string, query: Readonly<Record<string, string>>, signal: AbortSignal): AsyncGenerator<WatchEvent> {
    const { process, place, network, unavailableAs } = this.means;
    const { server } = this;
    const seconds = Number(query["timeoutSeconds"] ?? WATCH_SECONDS);
    const limit = (seconds + WATCH_GRACE_SECONDS) * 1_000;
    const ending = new AbortController();
    const stop = AbortSignal.any([signal, this.closing.signal, ending.signal]);
    if (stop.aborted) return;
    server.traffic.count(place, "read");
    const stream = server.openStream<WatchEvent>(process, place);
    const cancel = network.scheduler.after(limit, () => ending.abort());
    try {
      const start = () => server.startWatch(path, { ...query, timeoutSeconds: String(seconds) }, stream);
      await untilAborted(network.request(process, place, server, start, limit), [stop]);
      yield* stream.receive(stop);
    } catch (failure) {
      if (stop.aborted) return;
      throw failure instanceof RequestFailed ? failureOf(failure, unavailableAs) : failure;
    } finally {
      cancel();
      stream.close();
    }
  }

  async close(): Promise<void> {
    this.closing.abort();
  }
}

/** As the product's client reports it. */
export function failureOf(failure: RequestFailed, kind: ErrorKind): PluginError {
  return unavailable(failureOfConnection(connectionError(failure)), { server: "https://simulated", kind });
}
