/** A real API server with the CRDs and the operator's own objects; operators run in this process, under the operator's role. */
import { join } from "node:path";
import { SYSTEM_CLOCK } from "../../src/datastore/replica/clock.ts";
import { apiVersionOf, identity, OPERATOR_API, PRODUCT_API } from "../../src/identity.ts";
import type { KubeClient, KubeRequest, KubeResponse } from "../../src/kube/api.ts";
import { openKubeClient } from "../../src/kube/client.ts";
import { Elector } from "../../src/kube/election/elector.ts";
import type { Leadership } from "../../src/kube/election/leadership.ts";
import { requireOk } from "../../src/kube/require-ok.ts";
import { openInstallationDatastore } from "../../src/operator/installation-datastore.ts";
import { type OperatorOptions, RunningOperator } from "../../src/operator/run-operator.ts";
import { type ApiServer, startApiServer } from "./kube-apiserver.ts";
import { manifestText } from "./manifest-text.ts";
import { pollUntil } from "./poll.ts";

export const INSTALLATIONS = `/apis/${apiVersionOf(OPERATOR_API)}/installations`;
export const STATUSES = `/apis/${apiVersionOf(OPERATOR_API)}/${identity.product}statuses`;
export const POOLS = `/apis/${apiVersionOf(PRODUCT_API)}/ippools`;
export const SYSTEM = identity.systemNamespace;

const DEFINITIONS = join(import.meta.dir, "../../deploy/crds");
const WRITES = new Set(["POST", "PUT", "PATCH", "DELETE"]);

// biome-ignore lint/suspicious/noExplicitAny: objects of the API, as they are
export type Json = any;

export interface OperatorSite extends AsyncDisposable {
  readonly server: ApiServer;
  /** As the audit log names the operator. */
  readonly user: string;
  /** As the administrator; `undefined` if there is no such object. */
  read(path: string): Promise<Json>;
  list(path: string): Promise<readonly Json[]>;
  send(request: KubeRequest): Promise<Json>;
  /** Merges into the object. */
  patch(path: string, change: object): Promise<Json>;
  remove(path: string): Promise<void>;
  until(path: string, condition: (object: Json) => boolean, what: string, limit?: number): Promise<Json>;
  startOperator(plan?: OperatorPlan): Promise<TestOperator>;
}

export interface OperatorPlan {
  /** The process ends right after this many changes of objects; the response of the last one is lost. */
  readonly endsAfter?: number;
  /** With a Lease; by default it always leads. */
  readonly withLease?: true;
}

export interface TestOperator {
  readonly running: RunningOperator;
  readonly log: readonly string[];
  /** Paths of what it changed, with the method; without its Lease. */
  readonly writes: readonly string[];
  /** Resolves when it has ended by itself. */
  readonly ended: Promise<void>;
  isLeading(): boolean;
  stop(): Promise<void>;
  /** Waits until it has nothing to do: a whole pass after now without a write. */
  untilIdle(): Promise<void>;
}

export async function startOperatorSite(plan: Parameters<typeof startApiServer>[0] = {}): Promise<OperatorSite> {
  const server = await startApiServer(plan);
  await server.kubectl(["apply", "--server-side", `--filename=${DEFINITIONS}`, "--recursive"]);
  await server.kubectl(["apply", "--server-side", "--filename=-"], manifestText("operator.yaml"));
  await server.kubectl([
    "wait",
    `--filename=${DEFINITIONS}`,
    "--recursive",
    "--for=condition=Established",
    "--timeout=60s",
  ]);
  const { kubeconfig, user } = await server.serviceAccount({ name: identity.operator, namespace: identity.operator });
  const admin = await openClient(server.adminKubeconfig);
  const operators: TestOperator[] = [];
  const changes = new Changes();
  const send = async (request: KubeRequest) => JSON.parse(requireOk(await admin.request(request), request));
  const read = async (path: string) => {
    const request: KubeRequest = { method: "GET", path };
    const response = await admin.request(request);
    return response.status === 404 ? undefined : JSON.parse(requireOk(response, request));
  };
  return {
    server,
    user,
    read,
    send,
    list: async (path) => (await send({ method: "GET", path })).items,
    patch: (path, change) =>
      send({ method: "PATCH", path, contentType: "application/merge-patch+json", body: JSON.stringify(change) }),
    async remove(path) {
      const request: KubeRequest = { method: "DELETE", path };
      const response = await admin.request(request);
      if (response.status !== 404) requireOk(response, request);
    },
    async until(path, condition, what, limit) {
      let last: Json;
      const isMet = async () => {
        last = await read(path);
        return condition(last);
      };
      await pollUntil(isMet, what, limit).catch((failure) => {
        const log = operators.at(-1)?.log.join("\n");
        throw new Error(`${failure.message}; it is ${JSON.stringify(last, undefined, 1)}; log:\n${log}`);
      });
      return last;
    },
    async startOperator(operatorPlan = {}) {
      const operator = startOperator(await openClient(kubeconfig), changes, operatorPlan);
      operators.push(operator);
      return operator;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(operators.map((operator) => operator.stop()));
      await admin.close();
      await server.stop();
    },
  };
}

/** On a cluster in which the account of the operator exists. */
export async function startOperatorOn(server: Pick<ApiServer, "serviceAccount">): Promise<TestOperator> {
  const { kubeconfig } = await server.serviceAccount({ name: identity.operator, namespace: identity.operator });
  return startOperator(await openClient(kubeconfig), new Changes(), {});
}

function openClient(kubeconfig: string): Promise<KubeClient> {
  const means = { environment: {}, warn: () => {}, now: () => new Date(), elapsed: () => performance.now() };
  return openKubeClient({ kubeconfigs: [kubeconfig] }, means);
}

function startOperator(client: KubeClient, changes: Changes, { endsAfter, withLease }: OperatorPlan): TestOperator {
  const stop = new AbortController();
  const log: string[] = [];
  const writes: string[] = [];
  const counting = countingClient(client, changes, (write) => {
    writes.push(write);
    if (writes.length !== endsAfter) return false;
    stop.abort();
    return true;
  });
  const means = {
    now: () => new Date(),
    elapsed: () => performance.now(),
    wait: SYSTEM_CLOCK.wait,
    log: (message: string) => void log.push(message),
  };
  const lease = { client, namespace: identity.operator, name: identity.operator, identity: crypto.randomUUID() };
  const elector = withLease && new Elector({ ...lease, ...means });
  const leadership: Leadership = elector ?? { isLeading: () => true, whenLeading: async () => {} };
  const operatorOptions: OperatorOptions = {
    ...means,
    client: counting,
    openDatastore: openInstallationDatastore({ client: counting, environment: {}, warn: means.log }),
    namespaces: { operator: identity.operator, components: SYSTEM },
    leadership,
    signal: stop.signal,
    random: Math.random,
    newName: () => crypto.randomUUID(),
  };
  const running = new RunningOperator(operatorOptions);
  const electing = elector?.run(stop.signal);
  const ended = running.run().then(async () => {
    await electing;
    await client.close();
  });
  return {
    running,
    log,
    writes,
    ended,
    isLeading: () => leadership.isLeading(),
    async stop() {
      stop.abort();
      await ended;
    },
    async untilIdle() {
      let seen = { passes: running.state.passes, writes: -1 };
      const isIdle = () => {
        if (!running.state.isListed || running.state.passes <= seen.passes) return false;
        if (writes.length === seen.writes && running.state.lastFailure === "") return true;
        seen = { passes: running.state.passes, writes: writes.length };
        running.wake();
        return false;
      };
      running.wake();
      await pollUntil(isIdle, `the operator to be idle; it wrote ${writes.join(", ")}; log:\n${log.join("\n")}`);
    },
  };
}

/** `wrote` returns whether the process ends with this write: then its response is lost, and nothing else is sent. */
function countingClient(client: KubeClient, changes: Changes, wrote: (write: string) => boolean): KubeClient {
  let isOver = false;
  const request = async (wanted: KubeRequest): Promise<KubeResponse> => {
    if (isOver) throw new Error("the process has ended");
    const response = await client.request(wanted);
    if (!changes.hasChanged(wanted, response)) return response;
    isOver = wrote(`${wanted.method} ${wanted.path}`);
    if (isOver) throw new Error("the process has ended");
    return response;
  };
  return { request, watch: (...args) => client.watch(...args), close: () => client.close() };
}

/** Tells a write that changed something from one that found everything as it should be. */
class Changes {
  private readonly versions = new Map<string, string>();

  hasChanged({ method, path }: KubeRequest, { status, text }: KubeResponse): boolean {
    if (!WRITES.has(method) || status >= 300) return false;
    const version: string = JSON.parse(text).metadata?.resourceVersion ?? "";
    const place = path.replace(/\/status$/, "");
    const isSame = method === "PATCH" && this.versions.get(place) === version;
    this.versions.set(place, version);
    return !isSame;
  }
}
