/** The product's client of the orchestrator's API, whose requests go through the faulty network of a simulation. */
import type { ErrorKind } from "../../src/errors.ts";
import type { KubeClient, KubeRequest, KubeResponse, WatchEvent } from "../../src/kube/api.ts";
import { type Answer, type Fetch, openKubeClientOn } from "../../src/kube/client.ts";
import { connectionError } from "../faults/connection-error.ts";
import type { FaultyServer } from "../faults/faulty-server.ts";
import { type FaultyNetwork, RequestFailed } from "../faults/network.ts";
import { timersOf } from "../faults/process-timers.ts";
import type { FaultyStream } from "../faults/stream.ts";
import { untilAborted } from "../faults/until-aborted.ts";
import type { SimulatedProcess } from "../schedule/process.ts";

/** What the server does with a request that arrives. */
export interface ApiServer extends FaultyServer {
  respond(request: KubeRequest): KubeResponse;
  startWatch(path: string, query: Readonly<Record<string, string>>, stream: FaultyStream<WatchEvent>): KubeResponse;
  /** How many seconds it asks clients to wait, if it is too busy. */
  retryAfter(): number | undefined;
}

interface ClientMeans {
  readonly process: SimulatedProcess;
  readonly place: string;
  readonly network: FaultyNetwork;
  readonly unavailableAs: ErrorKind;
}

const SERVER = "http://api";

export function connectClient(server: ApiServer, means: ClientMeans): KubeClient {
  const { now, elapsed } = means.process;
  const random = means.process.random.fork("requests");
  const credentials = { current: async () => ({}), renew: () => false, description: "none" };
  const connection = { server: SERVER, roots: () => undefined, cluster: { server: SERVER }, credentials };
  return openKubeClientOn(connection, {
    environment: {},
    warn: () => {},
    now,
    elapsed,
    unavailableAs: means.unavailableAs,
    fetch: fetchFrom(server, means),
    timers: timersOf(means.process),
    random: () => random.next(),
  });
}

type Send = <Value>(action: () => Value) => Promise<Value>;

function fetchFrom(server: ApiServer, { process, place, network }: ClientMeans): Fetch {
  return (url, { method, body, headers, signal }) => {
    const stop = signal ?? new AbortController().signal;
    const send: Send = async (action) => {
      try {
        return await untilAborted(network.request(process, place, server, action), [stop]);
      } catch (failure) {
        throw failure instanceof RequestFailed ? connectionError(failure) : failure;
      }
    };
    const { pathname, searchParams } = new URL(url);
    const query = Object.fromEntries(searchParams);
    const isWatch = query["watch"] !== undefined;
    const purpose = isWatch ? "watch" : pathname.includes("/leases") ? "lease" : undefined;
    const what = [pathname, query["labelSelector"], query["fieldSelector"]].filter((each) => each !== undefined);
    server.traffic.count(
      { process, place },
      { kind: method === "GET" ? "read" : "write", purpose, what: what.join(" ") },
    );
    if (isWatch) {
      return watch(server, { send, stream: server.openStream(process, place), path: pathname, query, stop });
    }
    const contentType = headers && "Content-Type" in headers ? String(headers["Content-Type"]) : undefined;
    const request: KubeRequest = {
      method: method as KubeRequest["method"],
      path: decodeURIComponent(pathname),
      query,
      ...(typeof body === "string" ? { body } : {}),
      ...(contentType === undefined ? {} : { contentType }),
    };
    return send(() => answerOf(server, () => server.respond(request)));
  };
}

function answerOf(server: ApiServer, respond: () => KubeResponse): Answer {
  const seconds = server.retryAfter();
  if (seconds !== undefined)
    return answer({ status: 429, text: "too busy" }, { "retry-after": String(seconds), date: server.date });
  return answer(respond(), { date: server.date });
}

function answer({ status, text }: KubeResponse, sent: Readonly<Record<string, string>>): Answer {
  const headers = { get: (name: string) => sent[name] ?? null };
  return { status, ok: status < 300, headers, body: null, text: async () => text };
}

interface StartedWatch {
  readonly send: Send;
  readonly stream: FaultyStream<WatchEvent>;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly stop: AbortSignal;
}

async function watch(server: ApiServer, { send, stream, path, query, stop }: StartedWatch): Promise<Answer> {
  const started = send(() => answerOf(server, () => server.startWatch(path, query, stream)));
  const head = await started.catch((failure: unknown) => {
    stream.close();
    throw failure;
  });
  if (!head.ok) {
    stream.close();
    return head;
  }
  const cancel = async () => stream.close();
  return { ...head, body: Object.assign(linesOf(stream, stop), { cancel }) };
}

async function* linesOf(stream: FaultyStream<WatchEvent>, stop: AbortSignal): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  for await (const { type, text } of stream.receive(stop)) {
    yield encoder.encode(`{"type":"${type}","object":${text}}\n`);
  }
}
