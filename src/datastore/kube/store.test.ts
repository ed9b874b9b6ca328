import { describe, expect, test } from "bun:test";
import { anyText, anyTextInTwo } from "../../../test/support/any-text.ts";
import { type Around, type FakeApi, startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import { PluginError } from "../../errors.ts";
import { KubeFailure, unavailable } from "../../kube/failure.ts";
import { type Decide, HistoryGone } from "../datastore.ts";
import { failureOf } from "../datastore-contract/subject.ts";
import { datastoreContract } from "../datastore-contract.ts";
import { pagesBelow } from "../pages.ts";
import { seededRandom } from "../replica/replica-contract/recorded-history.ts";
import { replicaContract } from "../replica/replica-contract.ts";
import { openKubeStore } from "./store.ts";

let marks = 0;
const mapping = anyText({ writeAnnotation: "test/write", newMark: () => String(++marks) });

const inTwo = anyTextInTwo({ writeAnnotation: "test/write", newMark: () => String(++marks) });

function openOn(api: FakeApi, around?: Around, used = mapping) {
  const client = api.connect(around);
  return openKubeStore({ api: client, mappings: [used], close: () => client.close() });
}

function opening(used: typeof mapping) {
  return async () => {
    const api = startFakeApi();
    return {
      store: openOn(api, undefined, used),
      another: async () => openOn(api, undefined, used),
      forgetHistory: async () => api.forgetHistory(),
      dispose: async () => {},
    };
  };
}

const LEVEL = { atomicity: "one object", revisions: "of each object" } as const;
datastoreContract("the orchestrator's API, in memory,", opening(mapping), LEVEL);
replicaContract("the orchestrator's API, in memory", opening(mapping), { histories: 0, watches: "per kind" });
datastoreContract("a kind in two collections of the orchestrator's API", opening(inTwo), {
  ...LEVEL,
  order: "of each collection",
});
replicaContract("a kind in two collections of the orchestrator's API", opening(inTwo), {
  histories: 0,
  watches: "per kind",
});

describe("watches that begin together", () => {
  test("ask once for the present revision, and again if it was asked for too early", async () => {
    const api = startFakeApi();
    const asked: string[] = [];
    const store = openOn(api, async (request, send) => {
      if (request.query?.["limit"] === "1") asked.push(request.path);
      await Bun.sleep(0);
      return send();
    });
    const stop = new AbortController();
    const written = await store.commit([{ kind: "put", key: "/a", value: "x" }]);
    const revision = written.ok ? written.revision : "";
    const first = await Promise.all(
      Array.from({ length: 5 }, () => store.watch("/", revision, stop.signal)[Symbol.asyncIterator]().next()),
    );
    const late = store.watch("/", String(BigInt(revision) + 1n), stop.signal)[Symbol.asyncIterator]();

    expect(first.map(({ value }) => value)).toEqual(Array(5).fill({ kind: "bookmark", revision }));
    expect(asked).toHaveLength(1);
    expect(await failureOf(late.next())).toBeInstanceOf(HistoryGone);
    expect(asked).toHaveLength(3);
    stop.abort();
    await store.close();
  });
});

describe("a write whose response is lost", () => {
  const KEY = "/counter";

  /** Every write reaches the server; of each kind of loss some are lost. */
  function losing(random: () => number): Around {
    return async (request, send) => {
      const isWrite = request.method !== "GET";
      if (isWrite && random() < 0.3) throw lostResponse();
      const response = send();
      if (isWrite && random() < 0.3) throw lostResponse();
      return response;
    };
  }

  test("is neither repeated nor forgotten: no increment is lost or counted twice", async () => {
    const api = startFakeApi();
    const random = seededRandom(7);
    const stores = Array.from({ length: 4 }, () => openOn(api, losing(random)));
    let counted = 0;
    await Promise.all(
      stores.map(async (store) => {
        for (let done = 0; done < 25; ) {
          const { written } = await store.transact([{ kind: "key", key: KEY }], countUp);
          if (written.ok) {
            done += 1;
            counted += 1;
          }
        }
      }),
    );

    expect((await openOn(api).read([{ kind: "key", key: KEY }])).answers[0]?.[0]?.value).toBe(String(counted));
  });

  test("a deletion that took effect is a success", async () => {
    const api = startFakeApi();
    const seeing = openOn(api);
    const created = await seeing.commit([{ kind: "create", key: KEY, value: "x" }]);
    let isLost = false;
    const store = openOn(api, async ({ method }, send) => {
      const response = send();
      if (method !== "DELETE" || isLost) return response;
      isLost = true;
      throw lostResponse();
    });

    expect(
      await store.commit([{ kind: "delete", key: KEY, revision: created.ok ? created.revision : "" }]),
    ).toMatchObject({
      ok: true,
    });
    expect(isLost).toBe(true);
    expect((await seeing.read([{ kind: "key", key: KEY }])).answers[0]).toEqual([]);
  });

  test("fails with the reason if it cannot have taken effect", async () => {
    const store = openOn(startFakeApi(), async ({ method }, send) => {
      if (method !== "GET") throw new PluginError("datastore-unavailable", "Cannot connect");
      return send();
    });

    expect(await failureOf(store.commit([{ kind: "create", key: KEY, value: "x" }]))).toMatchObject({
      kind: "datastore-unavailable",
    });
  });
});

describe("what the API is asked", () => {
  const asked: string[] = [];
  const listening: Around = async ({ method, path }, send) => {
    asked.push(`${method} ${path.replace(/text-.*/, "NAME")}`);
    return send();
  };
  const TEXTS = "/apis/contract.test/v1/texts";

  test("an object that was read is written and deleted with one request each", async () => {
    const store = openOn(startFakeApi(), listening);
    await store.commit([{ kind: "create", key: "/k", value: "1" }]);
    const entry = (await store.read([{ kind: "key", key: "/k" }])).answers[0]?.[0];
    asked.splice(0);
    const updated = await store.commit([{ kind: "update", key: "/k", value: "2", revision: entry?.revision ?? "" }]);
    await store.commit([{ kind: "delete", key: "/k", revision: updated.ok ? updated.revision : "" }]);

    expect(asked).toEqual([`PUT ${TEXTS}/NAME`, `DELETE ${TEXTS}/NAME`]);
  });

  test("an expectation that the same transaction has just read costs no request", async () => {
    const store = openOn(startFakeApi(), listening);
    await store.commit([{ kind: "create", key: "/pool", value: "1" }]);
    asked.splice(0);
    const { written } = await store.transact([{ kind: "key", key: "/pool" }], ([first]) => ({
      kind: "commit",
      changes: [
        { kind: "expect", key: "/pool", revision: first?.answers[0]?.[0]?.revision },
        { kind: "create", key: "/k", value: "1" },
      ],
      outcome: undefined,
    }));

    expect(written.ok).toBe(true);
    expect(asked).toEqual([`GET ${TEXTS}/NAME`, `POST ${TEXTS}`]);
  });

  // A list that ends with a full page has an empty one after it.
  test.each([9, 8, 2])("pages of a list of %d are one list, at one revision", async (count) => {
    const store = openOn(startFakeApi(), listening);
    for (let index = 0; index < count; index++) await store.commit([{ kind: "create", key: `/p/${index}`, value: "" }]);
    asked.splice(0);
    const revisions = new Set<string>();
    for await (const { revision } of pagesBelow(store, "/p/", { size: 2 })) revisions.add(revision);

    expect(asked).toEqual([`GET ${TEXTS}`]);
    expect(revisions.size).toBe(1);
  });
});

describe("a list of several pages", () => {
  const OBJECTS = 600;
  /** Forgets the history after the first page, as often as given. */
  async function openForgetful(times: number) {
    const api = startFakeApi();
    const plain = openOn(api);
    for (let index = 0; index < OBJECTS; index++)
      await plain.commit([{ kind: "create", key: `/p/${index}`, value: "" }]);
    let left = times;
    return openOn(api, async ({ query }, send) => {
      const response = send();
      if (left > 0 && query?.["continue"] === undefined) {
        left -= 1;
        await plain.commit([{ kind: "put", key: "/other", value: String(left) }]);
        api.forgetHistory();
      }
      return response;
    });
  }

  test("starts again if the API server can no longer continue it", async () => {
    const store = await openForgetful(2);
    const { answers } = await store.read([{ kind: "prefix", prefix: "/p/" }]);

    expect(new Set(answers[0]?.map(({ key }) => key)).size).toBe(OBJECTS);
  });

  test("fails if that never ends", async () => {
    const store = await openForgetful(Number.POSITIVE_INFINITY);

    expect(await failureOf(store.read([{ kind: "prefix", prefix: "/p/" }]))).toMatchObject({
      kind: "datastore-unavailable",
    });
  });
});

test("a replacement keeps what others added to the object", async () => {
  const api = startFakeApi();
  const store = openOn(api);
  await store.commit([{ kind: "create", key: "/k", value: "1" }]);
  const path = mapping.path("/k") ?? "";
  const before = api.object(path);
  const metadata = { ...before?.metadata, finalizers: ["a/b"], labels: { c: "d" }, annotations: { e: "f" } };
  await api.connect().request({ method: "PUT", path, body: JSON.stringify({ ...before, metadata }) });
  const entry = (await store.read([{ kind: "key", key: "/k" }])).answers[0]?.[0];
  await store.commit([{ kind: "update", key: "/k", value: "2", revision: entry?.revision ?? "" }]);

  expect(api.object(path)?.metadata).toMatchObject({
    finalizers: ["a/b"],
    labels: { c: "d" },
    annotations: { e: "f" },
  });
});

const countUp: Decide<undefined> = (reads) => {
  const entry = reads[0]?.answers[0]?.[0];
  const value = String(Number(entry?.value ?? 0) + 1);
  const change = entry
    ? ({ kind: "update", key: entry.key, value, revision: entry.revision } as const)
    : ({ kind: "create", key: "/counter", value } as const);
  return { kind: "commit", changes: [change], outcome: undefined };
};

function lostResponse(): PluginError {
  const diagnosis = { stage: "request", effect: "unknown", cure: "wait", advice: "" } as const;
  return unavailable(new KubeFailure(diagnosis, "no response"), { server: "fake", kind: "datastore-unavailable" });
}
