/**
 * The contract of a datastore, and of a replica, on a real kube-apiserver: also
 * while it is killed and started again.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { type Datastore, type Decide, HistoryGone } from "../../src/datastore/datastore.ts";
import { collect, describeEvent, failureOf } from "../../src/datastore/datastore-contract/subject.ts";
import { datastoreContract } from "../../src/datastore/datastore-contract.ts";
import { openKubeStore } from "../../src/datastore/kube/store.ts";
import { replicaContract } from "../../src/datastore/replica/replica-contract.ts";
import { startReplica } from "../../src/datastore/replica.ts";
import type { KubeClient } from "../../src/kube/api.ts";
import { openKubeClient } from "../../src/kube/client.ts";
import { ANY_TEXT, anyText } from "../support/any-text.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { customResource } from "../support/kube-resources.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);
const { group, version, plural } = ANY_TEXT;

const mapping = anyText({ writeAnnotation: "contract.test/write", newMark: () => crypto.randomUUID() });

let server: ApiServer;
let admin: KubeClient;

beforeAll(async () => {
  if (problem !== undefined) return;
  server = await startApiServer();
  await server.apply(JSON.stringify(customResource({ ...ANY_TEXT, namespaced: false })));
  admin = await openClient();
  await pollUntil(async () => (await admin.request({ method: "GET", path: TEXTS })).status === 200, "the new resource");
}, 120_000);

afterAll(async () => {
  await admin?.close();
  await server?.stop();
});

const TEXTS = `/apis/${group}/${version}/${plural}`;

function openClient(): Promise<KubeClient> {
  return openKubeClient(
    { kubeconfigs: [server.adminKubeconfig] },
    { elapsed: () => performance.now(), environment: {}, warn: () => {}, now: () => new Date() },
  );
}

async function openStore(): Promise<Datastore> {
  const client = await openClient();
  return openKubeStore({ api: client, mappings: [mapping], close: () => client.close() });
}

async function open() {
  await admin.request({ method: "DELETE", path: TEXTS });
  return {
    store: await openStore(),
    another: openStore,
    // The history that it serves watches from is in its memory.
    forgetHistory: () => server.apiServer.restart(),
    dispose: async () => {},
  };
}

if (problem === undefined) {
  datastoreContract("the orchestrator's API", open, { atomicity: "one object", revisions: "of each object" });
  replicaContract("the orchestrator's API", open, { histories: 0, watches: "per kind" });
}

describe("an API server that is killed and started again", () => {
  testServer(
    "loses no increment of callers that are in the middle of it",
    async () => {
      const { store } = await open();
      const key = "/counter";
      const countUp: Decide<undefined> = ([first]) => {
        const entry = first?.answers[0]?.[0];
        const value = String(Number(entry?.value ?? 0) + 1);
        const change = entry
          ? ({ kind: "update", key, value, revision: entry.revision } as const)
          : ({ kind: "create", key, value } as const);
        return { kind: "commit", changes: [change], outcome: undefined };
      };
      const stop = new AbortController();
      let counted = 0;
      const callers = Array.from({ length: 6 }, async () => {
        const own = await openStore();
        while (!stop.signal.aborted) {
          const done = await own.transact([{ kind: "key", key }], countUp).catch(() => undefined);
          if (done?.written.ok) counted += 1;
        }
        await own.close();
      });
      await pollUntil(() => counted > 20, "the first increments");
      for (let round = 0; round < 2; round++) {
        const before = counted;
        await server.apiServer.restart();
        await pollUntil(() => counted > before + 20, "more increments");
      }
      stop.abort();
      await Promise.all(callers);

      const value = (await store.read([{ kind: "key", key }])).answers[0]?.[0]?.value;
      expect(Number(value)).toBeGreaterThanOrEqual(counted);
      // A caller that failed did not learn whether its last increment took effect.
      expect(Number(value)).toBeLessThanOrEqual(counted + 12);
      await store.close();
    },
    60_000,
  );

  testServer(
    "is followed again by a replica, which misses nothing",
    async () => {
      const { store } = await open();
      const stop = new AbortController();
      const kinds = { texts: { prefix: "/r/", decode: ({ value }: { readonly value: string }) => value } };
      const replica = startReplica<{ readonly texts: string }>(store, kinds, {
        signal: stop.signal,
        watches: "per kind",
        limits: { firstPauseMilliseconds: 20, longestPauseMilliseconds: 200 },
      });
      await store.commit([{ kind: "create", key: "/r/before", value: "1" }]);
      await pollUntil(() => replica.snapshot?.texts.get("/r/before") === "1", "the first state");
      await server.apiServer.kill();
      await pollUntil(() => replica.status.state === "stale", "the loss of the connection");
      await server.apiServer.restart();
      await store.commit([{ kind: "create", key: "/r/after", value: "2" }]);

      await pollUntil(() => replica.snapshot?.texts.get("/r/after") === "2", "the state after the restart");
      expect(replica.snapshot?.texts.get("/r/before")).toBe("1");
      stop.abort();
      await replica.ended;
      await store.close();
    },
    60_000,
  );

  testServer(
    "reports a watch whose history is gone",
    async () => {
      const { store } = await open();
      const { revision } = await store.read([]);
      await store.commit([{ kind: "create", key: "/w/a", value: "1" }]);
      expect((await collect(store, "/w/", revision, 1)).map(describeEvent)).toEqual(["put /w/a 1"]);
      await server.apiServer.restart();

      expect(await failureOf(collect(store, "/w/", revision, 1))).toBeInstanceOf(HistoryGone);
      await store.close();
    },
    60_000,
  );
});
