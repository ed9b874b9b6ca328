/**
 * The console of a cluster that does not exist: its server, its page and its source are the real ones, the API server and the records
 * of the cluster are imitated in memory. For what a real cluster does not have at hand: trouble, a long history, many nodes.
 */
import { loadPage } from "../../src/console/page-bundle.ts";
import { ConsoleServer } from "../../src/console/server/console-server.ts";
import { SESSION_LIMITS, type SessionLimits } from "../../src/console/server/sessions.ts";
import { clusterSources } from "../../src/console/source/cluster-source.ts";
import type { Datastore } from "../../src/datastore/datastore.ts";
import { openMemory } from "../../src/datastore/memory/memory.ts";
import { SYSTEM_CLOCK } from "../../src/datastore/replica/clock.ts";
import { explainFlow } from "../../src/flows/explain-flow.ts";
import type { FlowAnswer } from "../../src/flows/flow-answer.ts";
import { readFlowQuery, type Sight } from "../../src/flows/flow-query.ts";
import type { FlowRecord } from "../../src/flows/flow-record.ts";
import { visibleFlow, visibleMatcher } from "../../src/flows/visible-flows.ts";
import { identity } from "../../src/identity.ts";
import { nodeAgentSettings } from "../../src/model/node-agent-configuration.ts";
import { readPolicy } from "../../src/policy/read-resources.ts";
import { SYSTEM_TIMERS } from "../../src/timers.ts";
import { NO_LOSSES } from "./imitated-flows.ts";
import { NODES, RELEASE, shopObjects, shopRecords } from "./imitated-shop.ts";
import { seed } from "./ipam.ts";
import { startFakeApi } from "./kube-api/fake-api.ts";
import { type AskedFlows, EVERYTHING, isAllowed, type ReadersCluster, type Role, readersCluster } from "./readers.ts";

export interface ImitatedConsole {
  /** Of the page. */
  readonly address: string;
  /** By token; a test changes them. */
  readonly roles: ReadersCluster["roles"];
  readonly store: Datastore;
  /** Nodes whose agents do not answer questions about flows; a test changes them. */
  readonly silent: Set<string>;
  /** The nodes record this connection now, or more of one that they know. */
  record(flow: FlowRecord): void;
  /** Ends the server, with all sessions; the cluster stays. */
  stop(): void;
  /** Again at the same address. */
  start(): Promise<void>;
}

export interface ImitatedConsoleOptions {
  /** `token` -> who has it; by default "admin", who may do everything. */
  readonly readers?: Readonly<Record<string, Role>>;
  /** Recorded before, the oldest first. */
  readonly flows?: readonly FlowRecord[];
  readonly sessionLimits?: Partial<SessionLimits>;
  /** In place of those of the shop. */
  readonly objects?: ReturnType<typeof shopObjects>;
  readonly store?: Datastore;
}

export const ADMIN: Role = { user: "anna@example.org", rules: EVERYTHING };

export async function startImitatedConsole(options: ImitatedConsoleOptions = {}): Promise<ImitatedConsole> {
  const { readers = { admin: ADMIN }, sessionLimits = {}, objects = shopObjects(Date.now()) } = options;
  const api = startFakeApi({ now: () => new Date() });
  for (const [path, object] of objects) api.respond({ method: "POST", path, body: JSON.stringify(object) });
  const store = options.store ?? openMemory();
  if (options.store === undefined) await seed(store, ...shopRecords(Date.now()));
  const history = new FlowHistory(store, options.flows ?? []);
  const { roles, openClient } = readersCluster(api, readers, (path, asked) => history.answer(path, asked));
  const page = await loadPage();
  const openSource = clusterSources({
    ...{ version: RELEASE, server: {}, now: () => new Date(), etcd: store, openClient },
    wait: (milliseconds) => SYSTEM_CLOCK.wait(milliseconds, new AbortController().signal),
    uuid: () => crypto.randomUUID(),
  });
  const newServer = () =>
    new ConsoleServer({
      ...{ page, openSource, log: () => {}, now: Date.now, clock: SYSTEM_CLOCK, timers: SYSTEM_TIMERS },
      about: { product: identity.product, version: RELEASE, mode: "cluster", writable: true },
      cookie: () => `__Host-${identity.product}-console`,
      isOwnHost: (name) => name === "127.0.0.1",
      sessionLimits: { ...SESSION_LIMITS, ...sessionLimits },
    });
  let server = newServer();
  await server.listen("127.0.0.1", 0);
  const { port } = server;
  return {
    ...{ address: `http://127.0.0.1:${port}/`, roles, store, silent: history.silent },
    record: (flow) => history.record(flow),
    stop: () => server.close(),
    async start() {
      server = newServer();
      await server.listen("127.0.0.1", port);
    },
  };
}

/** As the API of flows answers, from a list. */
class FlowHistory {
  private readonly flows: Map<string, FlowRecord>;
  private readonly followers = new Set<(flow: FlowRecord) => void>();
  /** Nodes whose agents do not answer. */
  readonly silent = new Set<string>();

  constructor(
    private readonly store: Datastore,
    flows: readonly FlowRecord[],
  ) {
    this.flows = new Map(flows.map((flow) => [flow.id, flow]));
  }

  record(flow: FlowRecord): void {
    this.flows.set(flow.id, flow);
    for (const follower of this.followers) follower(flow);
  }

  async *answer(path: string, { query: { watch, ...query }, role, signal }: AskedFlows): AsyncIterable<FlowAnswer> {
    if (path.endsWith("/explanation")) return yield* this.explanation(query["id"] ?? "");
    const wanted = readFlowQuery(new URLSearchParams(query));
    const sight = sightOf(role);
    const matches = visibleMatcher({ query: wanted, sight });
    const later: FlowRecord[] = [];
    let wake = () => {};
    const follower = (flow: FlowRecord) => {
      if (matches(flow)) later.push(flow);
      wake();
    };
    if (watch === "true") this.followers.add(follower);
    try {
      const found = [...this.flows.values()].filter(matches);
      const last = wanted.last === undefined ? found : found.slice(-wanted.last);
      for (const flow of last) yield { flow: visibleFlow(flow, sight) ?? flow };
      for (const node of NODES) yield this.silent.has(node) ? silence(node) : { losses: { node, ...NO_LOSSES } };
      while (watch === "true" && !signal.aborted) {
        for (const flow of later.splice(0)) yield { flow: visibleFlow(flow, sight) ?? flow };
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        signal.addEventListener("abort", wake, { once: true });
        if (later.length === 0 && !signal.aborted) await promise;
        signal.removeEventListener("abort", wake);
      }
    } finally {
      this.followers.delete(follower);
    }
  }

  private async *explanation(id: string): AsyncIterable<FlowAnswer> {
    const flow = this.flows.get(id);
    if (flow === undefined) return;
    const { resources, configurations } = await readPolicy(this.store, { withServices: true });
    const settingsOf = (node: string) => nodeAgentSettings(configurations, node);
    yield { explanation: explainFlow(flow, resources, { settingsOf }) };
  }
}

function silence(node: string): FlowAnswer {
  return { problem: { node, message: "its agent does not answer" } };
}

const NAMESPACES = ["shop", "payments", "monitoring", "batch", "edge"];

function sightOf(role: Role): Sight {
  const may = (resource: string, namespace?: string) => isAllowed(role, { verb: "list", resource, namespace });
  const podsOf = new Set(NAMESPACES.filter((namespace) => may("pods", namespace)));
  return { everyPod: may("pods"), nodes: may("nodes"), podsOf };
}
