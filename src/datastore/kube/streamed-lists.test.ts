import { afterEach, describe, expect, test } from "bun:test";
import { anyText, anyTextInTwo } from "../../../test/support/any-text.ts";
import { type FakeApi, startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import type { WatchEvent } from "../../kube/api.ts";
import { requireOk } from "../../kube/require-ok.ts";
import type { DatastoreEvent, EnoughState } from "../datastore.ts";
import { failureOf } from "../datastore-contract/subject.ts";
import type { Api } from "./api.ts";
import { openKubeStore } from "./store.ts";

const mapping = anyText({ writeAnnotation: "test/write", newMark: () => "mark" });
const stop = { signal: new AbortController() };
afterEach(() => {
  stop.signal.abort();
  stop.signal = new AbortController();
});

function filled(options: Parameters<typeof startFakeApi>[0] = {}): FakeApi {
  const api = startFakeApi(options);
  for (const key of ["/a", "/b"]) api.respond(mapping.create(key, "value", undefined).request);
  return api;
}

/** `cut`: what becomes of the events of the watch of that number, from 1. */
function openOn(
  api: FakeApi,
  cut: (events: AsyncIterable<WatchEvent>, number: number) => AsyncIterable<WatchEvent> = (events) => events,
) {
  const asked: string[] = [];
  const open = new Set<number>();
  const client = api.connect();
  const counting: Api = {
    request: (request) => {
      asked.push("list");
      return client.request(request);
    },
    async *watch(path, query, signal) {
      const number = asked.push(
        query["sendInitialEvents"] === undefined ? "watch" : `stream ${query["resourceVersion"]}`,
      );
      open.add(number);
      try {
        yield* cut(client.watch(path, query, signal), number);
      } finally {
        open.delete(number);
      }
    },
  };
  const store = openKubeStore({ api: counting, mappings: [mapping], close: () => client.close() });
  const list = async (enough?: EnoughState) => {
    const { answers, revision } = await store.read([{ kind: "prefix", prefix: "/", ...(enough && { enough }) }]);
    return { keys: (answers[0] ?? []).map(({ key }) => key), revision };
  };
  const watch = (from: string) => store.watch("/", from, stop.signal.signal)[Symbol.asyncIterator]();
  return { store, asked, open, list, watch };
}

/** The events up to the first that is not a bookmark. */
async function nextChange(events: AsyncIterator<DatastoreEvent>): Promise<string> {
  for (;;) {
    const { value } = await events.next();
    if (value.kind === "put") return value.entry.key;
    if (value.kind === "delete") return `deleted ${value.key}`;
  }
}

describe("a kind in two collections", () => {
  test.each(["served", "refused"] as const)(
    "is watched from where each was listed: a server has the history of the second only since it was (WatchList %s)",
    async (watchList) => {
      // The copy of the first is as old as what is known already.
      const lag = (_: number, collection: string) => (collection.endsWith("/texts") ? 20 : 0);
      const api = startFakeApi({ watchList, lag });
      const two = anyTextInTwo({ writeAnnotation: "test/write", newMark: () => "mark" });
      const write = (key: string) => api.respond(two.create(key, "value", undefined).request);
      const before = Array.from({ length: 10 }, (_, number) => `/before-${number}`);
      const after = Array.from({ length: 10 }, (_, number) => `/after-${number}`);
      api.forgetHistory();
      api.respond({ method: "GET", path: "/apis/contract.test/v1/texts" });
      before.forEach(write);
      const client = api.connect();
      const store = openKubeStore({ api: client, mappings: [two], close: () => client.close() });
      const enough = { notOlderThan: "101" };
      const { revision } = await store.read([{ kind: "prefix", prefix: "/", enough }]);
      const heard = new Set<string>();
      const events = store.watch("/", revision, stop.signal.signal)[Symbol.asyncIterator]();
      await events.next();
      after.forEach(write);
      while (!after.every((key) => heard.has(key))) heard.add(await nextChange(events));
    },
  );
});

describe("a role that does not allow to watch", () => {
  test("is enough to know what was listed; then the failure names the permission", async () => {
    const request = { method: "GET", path: "/apis/contract.test/v1/texts", query: { watch: "1" } } as const;
    // biome-ignore lint/correctness/useYield: it fails before the first event.
    const { asked, list, watch } = openOn(filled(), async function* () {
      requireOk({ status: 403, text: "{}" }, request);
    });
    const { keys, revision } = await list({});
    const events = watch(revision);

    expect(keys).toEqual(["/a", "/b"]);
    expect((await events.next()).value).toEqual({ kind: "bookmark", revision });
    expect(await failureOf(events.next())).toMatchObject({
      message: expect.stringContaining("lacks the permission to watch texts"),
    });
    expect(asked).toEqual(["stream ", "list", "watch", "list"]);
  });
});

describe("a list that is the beginning of a watch", () => {
  test("is one request for both", async () => {
    const api = filled();
    const { asked, list, watch } = openOn(api);
    const { keys, revision } = await list({ notOlderThan: "101" });
    const events = watch(revision);
    expect((await events.next()).value).toEqual({ kind: "bookmark", revision });
    api.respond(mapping.create("/c", "value", undefined).request);

    expect(keys).toEqual(["/a", "/b"]);
    expect(await nextChange(events)).toBe("/c");
    expect(asked).toEqual(["stream 101"]);
  });

  test("has what changes before its end", async () => {
    const api = filled();
    const changing = async function* (events: AsyncIterable<WatchEvent>) {
      const due: WatchEvent[] = [];
      for await (const event of events) {
        due.push(event);
        if (event.type === "BOOKMARK") break;
      }
      const [opened, a, b, end] = due;
      if (!opened || !a || !b || !end) throw new Error("The list is another");
      yield* [opened, a, b, { ...a, type: "DELETED" } as const, { ...b, type: "MODIFIED" } as const, end];
    };
    const { list } = openOn(api, changing);

    expect((await list({})).keys).toHaveLength(1);
  });

  test("is asked for only if an older state is enough", async () => {
    const { asked, list } = openOn(filled());
    await list();

    expect(asked).toEqual(["list"]);
  });

  test("is asked for once if the server refuses it", async () => {
    const { asked, list } = openOn(filled({ watchList: "refused" }));
    await list({});
    await list({});

    expect(asked).toEqual(["stream ", "list", "list"]);
  });

  test("is the present state if the server has not reached what its reader knows", async () => {
    const { asked, list } = openOn(filled());

    expect((await list({ notOlderThan: "9999" })).keys).toEqual(["/a", "/b"]);
    expect(asked).toEqual(["stream 9999", "stream "]);
  });

  test("is read in pages, which are kept, after its stream broke", async () => {
    const breaking = async function* (events: AsyncIterable<WatchEvent>, number: number) {
      for await (const event of events) {
        yield event;
        if (event.type === "ADDED" && number === 1) throw new Error("the connection was reset");
      }
    };
    const { asked, list } = openOn(filled(), breaking);
    await failureOf(list({}));
    expect((await list({})).keys).toEqual(["/a", "/b"]);
    await list({});

    expect(asked).toEqual(["stream ", "list", "stream "]);
  });

  test.each([
    ["the status 500", { status: 500 }],
    ["the status 501", { status: 501 }],
    ["no response", "no response"],
    ["an ERROR of another kind", "event"],
  ] as const)("is read in pages after a stream that failed with %s", async (_, failure) => {
    const request = { method: "GET", path: "/apis/contract.test/v1/texts", query: { watch: "1" } } as const;
    const { asked, list } = openOn(filled(), async function* () {
      if (failure === "no response") throw new Error("no response within the time limit");
      if (failure !== "event") requireOk({ ...failure, text: "{}" }, request);
      yield { type: "ERROR", text: `{"kind":"Status","code":500}` };
    });
    await failureOf(list({}));

    expect((await list({})).keys).toEqual(["/a", "/b"]);
    expect(asked).toEqual(["stream ", "list"]);
  });

  test("is the present state if the status says that the server has not reached what its reader knows", async () => {
    const request = { method: "GET", path: "/apis/contract.test/v1/texts", query: { watch: "1" } } as const;
    const { asked, list } = openOn(filled(), async function* (events, number) {
      if (number === 1) requireOk({ status: 504, text: "{}" }, request);
      yield* events;
    });

    expect((await list({ notOlderThan: "9999" })).keys).toEqual(["/a", "/b"]);
    expect(asked).toEqual(["stream 9999", "stream "]);
  });

  test("has failed if the server ends it before its end", async () => {
    const { list } = openOn(filled(), async function* (events) {
      for await (const event of events) {
        if (event.type === "BOOKMARK") return;
        yield event;
      }
    });

    expect(await failureOf(list({}))).toMatchObject({ message: expect.stringContaining("before the end of the list") });
  });

  test("does not go on as the watch of a reader that knows another state", async () => {
    const api = filled();
    const { asked, open, list, watch } = openOn(api);
    const before = (await list({})).revision;
    api.respond(mapping.create("/c", "value", undefined).request);
    await list({});

    expect(await nextChange(watch(before))).toBe("/c");
    expect(asked.slice(0, 3)).toEqual(["stream ", "stream ", "watch"]);
    expect([...open]).toEqual([3]);
  });

  test("leaves no watch open", async () => {
    const { store, open, list, watch } = openOn(filled());
    const { revision } = await list({});
    const events = watch(revision);
    await events.next();
    expect(open.size).toBe(1);
    stop.signal.abort();
    await events.next();
    expect(open.size).toBe(0);
    await list({});
    expect(open.size).toBe(1);
    await store.close();
    await Bun.sleep(0);
    expect(open.size).toBe(0);
  });
});
