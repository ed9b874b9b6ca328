import { describe, expect, test } from "bun:test";
import { anyText } from "../../../test/support/any-text.ts";
import { type FakeApi, startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import type { KubeRequest } from "../../kube/api.ts";
import { type EnoughState, HistoryGone } from "../datastore.ts";
import { failureOf } from "../datastore-contract/subject.ts";
import { startReplica } from "../replica.ts";
import { openKubeStore } from "./store.ts";

const mapping = anyText({ writeAnnotation: "test/write", newMark: () => "mark" });

/** An API with 1,200 objects, in pages of 500: of a server that cannot send a list as the beginning of a watch, unless told. */
function filledApi(watchList: "served" | "refused" = "refused"): FakeApi {
  const api = startFakeApi({ watchList });
  for (let number = 0; number < 1_200; number++) {
    api.respond(mapping.create(`/${String(number).padStart(5, "0")}`, "value", undefined).request);
  }
  return api;
}

/** `fail`: whether the request of that number, from 1, gets no response. */
function openOn(api: FakeApi, fail: (number: number, request: KubeRequest) => boolean = () => false) {
  const asked: string[] = [];
  const client = api.connect(async (request, send) => {
    const { continue: token, resourceVersion, resourceVersionMatch } = request.query ?? {};
    const place = token === undefined ? "first" : "next";
    asked.push(`${place}${resourceVersion === undefined ? "" : ` ${resourceVersionMatch} ${resourceVersion}`}`);
    if (fail(asked.length, request)) throw new Error("no response");
    return send();
  });
  const store = openKubeStore({ api: client, mappings: [mapping], close: () => client.close() });
  const list = async (enough?: EnoughState) => {
    const { answers, revision } = await store.read([
      { kind: "prefix", prefix: "/", ...(enough === undefined ? {} : { enough }) },
    ]);
    return { records: answers[0]?.length, revision };
  };
  return { store, asked, list };
}

describe("a list for which an older state is enough", () => {
  test("goes on with the pages that were read before it failed", async () => {
    const api = filledApi();
    const { asked, list } = openOn(api, (number) => number === 3);
    const before = api.revision;
    await failureOf(list({}));
    api.respond(mapping.create("/later", "value", undefined).request);

    expect(await list({})).toMatchObject({ revision: before });
    expect(asked).toEqual(["first", "next", "next", "next"]);
  });

  test("begins again if the server cannot continue it, or does not let it", async () => {
    const api = filledApi();
    const { asked, list } = openOn(api, (number) => number === 2);
    await failureOf(list({}));
    api.respond(mapping.create("/later", "value", undefined).request);
    api.forgetHistory();
    const afterCompaction = await list({});
    let isBroken = true;
    const broken = openOn(api, (_, { query }) => isBroken && query?.["continue"] !== undefined);
    for (let attempt = 0; attempt < 5; attempt++) await failureOf(broken.list({}));
    isBroken = false;
    await broken.list({});

    expect(afterCompaction).toEqual({ records: 1_201, revision: api.revision });
    expect(asked).toEqual(["first", "next", "next", "first", "next", "next"]);
    expect(broken.asked.filter((each) => each === "first")).toHaveLength(2);
  });

  test("does not go on with pages that are older than what its reader knows", async () => {
    const api = filledApi();
    const { asked, list } = openOn(api, (number) => number === 2);
    await failureOf(list({}));
    api.respond(mapping.create("/later", "value", undefined).request);

    expect(await list({ notOlderThan: api.revision })).toEqual({ records: 1_201, revision: api.revision });
    expect(asked.slice(2)).toEqual([`first NotOlderThan ${api.revision}`, "next", "next"]);
  });

  test("is asked for without pages if it was a part of one before", async () => {
    const api = startFakeApi({ watchList: "refused" });
    api.respond(mapping.create("/a", "value", undefined).request);
    const limits: unknown[] = [];
    const { list } = openOn(api, (_, { query }) => {
      limits.push(query?.["limit"]);
      return false;
    });
    await list({});
    await list({ notOlderThan: api.revision });
    await list();

    expect(limits).toEqual(["500", undefined, "500"]);
  });

  test("is asked for in pages again after a failure: it may have become too large for one response", async () => {
    const api = startFakeApi({ watchList: "refused" });
    const limits: unknown[] = [];
    const { list } = openOn(api, (number, { query }) => {
      limits.push(query?.["limit"]);
      return number === 2;
    });
    await list({});
    await failureOf(list({ notOlderThan: api.revision }));
    await list({ notOlderThan: api.revision });

    expect(limits).toEqual(["500", undefined, "500"]);
  });

  test("is the present state if the server has not reached what its reader knows", async () => {
    const api = filledApi();
    const { asked, list } = openOn(api);

    expect(await list({ notOlderThan: "9999" })).toEqual({ records: 1_200, revision: api.revision });
    expect(asked.slice(0, 2)).toEqual(["first NotOlderThan 9999", "first"]);
  });

  test("goes on with its pages after a failure, also if that state has a lower revision, as after a restore", async () => {
    const api = filledApi();
    const { asked, list } = openOn(api, (number) => number === 3);
    await failureOf(list({ notOlderThan: "9999" }));

    expect(await list({ notOlderThan: "9999" })).toMatchObject({ records: 1_200 });
    expect(asked.filter((each) => each.startsWith("first"))).toEqual(["first NotOlderThan 9999", "first"]);
  });

  test("is not what others read: they read the present state from its beginning", async () => {
    const api = filledApi();
    const { asked, list } = openOn(api, (number) => number === 2);
    await failureOf(list({}));
    api.respond(mapping.create("/later", "value", undefined).request);

    expect(await list()).toEqual({ records: 1_201, revision: api.revision });
    expect(asked[2]).toBe("first");
  });

  test("is what a replica asks for that lists again, with what it has published", async () => {
    const api = filledApi();
    const { store, asked } = openOn(api);
    let isGone = false;
    const cut = new AbortController();
    const stop = new AbortController();
    const replica = startReplica(
      {
        read: (...wanted) => store.read(...wanted),
        async *watch(prefix, from, signal) {
          yield* store.watch(prefix, from, AbortSignal.any([signal, cut.signal]));
          if (signal.aborted || isGone) return;
          isGone = true;
          throw new HistoryGone(from);
        },
      },
      { texts: { prefix: "/", decode: ({ value }) => value } },
      { signal: stop.signal, watches: "per kind" },
    );
    for await (const { snapshot } of replica.updates()) {
      if (snapshot.texts.size === 1_200) break;
    }
    const published = api.revision;
    const before = asked.length;
    api.respond(mapping.create("/later", "value", undefined).request);
    for await (const { snapshot } of replica.updates()) {
      if (snapshot.texts.size === 1_201) break;
    }
    cut.abort();
    while (asked.length === before) await Bun.sleep(1);
    stop.abort();
    await replica.ended;

    expect(asked[before]).toBe(`first NotOlderThan ${BigInt(published) + 1n}`);
  });

  test.each(["served", "refused"] as const)(
    "is the present state after one that was too old to be watched, as that of a server that is behind (WatchList %s)",
    async (watchList) => {
      const api = startFakeApi({ watchList, lag: () => 10 });
      for (let number = 0; number < 20; number++) api.respond(mapping.create(`/${number}`, "a", undefined).request);
      const seen = { find: () => "105", note: () => {} };
      api.forgetHistory();
      const { store } = openOn(api);
      const stop = new AbortController();
      const replica = startReplica(
        store,
        { texts: { prefix: "/", decode: ({ value }) => value } },
        { signal: stop.signal, watches: "per kind", seen },
      );
      for await (const { snapshot } of replica.updates()) if (snapshot.texts.size === 20) break;
      stop.abort();
      await replica.ended;
    },
  );
});

describe("a list", () => {
  test.each(["served", "refused"] as const)(
    "keeps of an object only its record, as soon as it has come: whole pods need gigabytes (WatchList %s)",
    async (watchList) => {
      const api = filledApi(watchList);
      const client = api.connect();
      let received = 0;
      let recorded = 0;
      let mostKept = 0;
      const receive = (objects: number) => {
        mostKept = Math.max(mostKept, received - recorded);
        received += objects;
      };
      const store = openKubeStore({
        api: {
          request: async (request) => {
            receive(0);
            const response = await client.request(request);
            received += response.text.split('"uid"').length - 1;
            return response;
          },
          async *watch(path, query, signal) {
            for await (const event of client.watch(path, query, signal)) {
              receive(event.type === "ADDED" ? 1 : 0);
              yield event;
            }
          },
        },
        mappings: [
          {
            ...mapping,
            record: (object) => {
              recorded += 1;
              return mapping.record(object);
            },
          },
        ],
        close: () => client.close(),
      });
      const { answers } = await store.read([{ kind: "prefix", prefix: "/", enough: {} }]);
      await store.close();

      expect([answers[0]?.length, received, recorded]).toEqual([1_200, 1_200, 1_200]);
      expect(mostKept).toBe(0);
    },
  );
});
