/** A replica on an API server, or a proxy before it, that answers a watch and then does not keep it, or sends nothing. */
import { describe, expect, test } from "bun:test";
import { anyText } from "../../../test/support/any-text.ts";
import { meansWith } from "../../../test/support/imitated-api.ts";
import { ManualClock, timersOn } from "../../../test/support/manual-clock.ts";
import { startedReplicas } from "../../../test/support/started-replicas.ts";
import { type Fetch, openKubeClient } from "../../kube/client.ts";
import { LIMITS } from "../../kube/retries.ts";
import { ageOf } from "../replica/status.ts";
import { startReplica } from "../replica.ts";
import { openKubeStore } from "./store.ts";

const mapping = anyText({ writeAnnotation: "test/write", newMark: () => "mark" });
const KINDS = { things: { prefix: "/", decode: ({ value }: { readonly value: string }) => value } };
const BOOKMARK = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}\n`;

const started = startedReplicas();

/** `watch`: what the server does with the watch of that number, from 1. `current`: the revision of the datastore. */
async function follow(
  watch: (number: number, signal: AbortSignal, clock: ManualClock) => Response | Promise<Response>,
  current: () => string = () => "7",
) {
  const clock = new ManualClock();
  const seen = { watches: 0, lists: 0 };
  const problems: string[] = [];
  const fetch: Fetch = async (url, { signal }) => {
    if (url.includes("sendInitialEvents=")) return new Response("{}", { status: 422 });
    if (url.includes("watch=")) return watch(++seen.watches, signal ?? started.stop.signal, clock);
    seen.lists += 1;
    return new Response(JSON.stringify({ metadata: { resourceVersion: current() }, items: [] }));
  };
  const timers = timersOn(clock);
  const client = await openKubeClient(
    { apiRoot: "http://api" },
    meansWith({ elapsed: () => clock.now(), fetch, timers, limits: LIMITS, random: () => 0 }),
  );
  const store = openKubeStore({ api: client, mappings: [mapping], close: () => client.close() });
  const replica = startReplica(store, KINDS, {
    signal: started.stop.signal,
    clock,
    random: () => 1,
    report: ({ message }) => void problems.push(message),
  });
  started.note(replica);
  const pass = async (seconds: number) => {
    for (let time = 0; time < seconds * 10; time += 1) await clock.advance(100);
  };
  return { clock, replica, problems, seen, pass };
}

/** A body that sends this and then nothing, until the request is ended. */
function silent(signal: AbortSignal, sent = ""): Response {
  const start = (to: ReadableStreamDefaultController<string>) => {
    if (sent !== "") to.enqueue(sent);
    signal.addEventListener("abort", () => to.error(signal.reason), { once: true });
  };
  return new Response(new ReadableStream<string>({ start }).pipeThrough(new TextEncoderStream()));
}

describe("a watch that the server ends at once", () => {
  test.each([
    ["without an event", ""],
    ["after an event", BOOKMARK],
  ])("is asked for again with growing pauses, reported, and not in sync (%s)", async (_, sent) => {
    const MOST = 1_000;
    const { clock, replica, problems, seen, pass } = await follow((number) =>
      number > MOST ? new Response("enough", { status: 500 }) : new Response(sent),
    );
    await pass(20);

    // Pauses of 0.1, 0.2, 0.4, ... 10 s.
    expect(seen.watches).toBe(8);
    expect(problems).toHaveLength(8);
    expect(problems.at(-1)).toContain("the server ended the watch at once");
    expect(replica.status).toMatchObject({ state: "stale", failure: { kind: "api-unavailable" } });
    expect(clock.now() - replica.status.since).toBeGreaterThan(19_000);
  });

  test.each([
    [4, "is asked for again with pauses", 13],
    [6, "is asked for again at once", 20],
  ])("after %d seconds %s", async (seconds, _, expected) => {
    const { seen, pass } = await follow((__, signal, clock) => lasting(seconds * 1_000, signal, clock));
    await pass(119);

    expect(seen.watches).toBe(expected);
  });
});

/** A body with an event, which the server ends after that time. */
function lasting(milliseconds: number, signal: AbortSignal, clock: ManualClock, sent = BOOKMARK): Response {
  const start = async (to: ReadableStreamDefaultController<string>) => {
    if (sent !== "") to.enqueue(sent);
    await clock.wait(milliseconds, signal);
    if (signal.aborted) to.error(signal.reason);
    else to.close();
  };
  return new Response(
    new ReadableStream<string>({ start: (to) => void start(to) }).pipeThrough(new TextEncoderStream()),
  );
}

describe("a watch that the server refuses", () => {
  test("costs one request for each attempt", async () => {
    const { replica, seen, pass } = await follow(() => new Response("starting", { status: 500 }));
    await pass(20);

    expect(seen).toEqual({ watches: 8, lists: 1 });
    expect(replica.status.state).toBe("listing");
  });
});

describe("a watch of an API server that sends nothing", () => {
  test("is begun again after 90 seconds without even a bookmark, which is not a problem", async () => {
    const { clock, replica, problems, seen, pass } = await follow((number, signal) =>
      silent(signal, number === 1 ? BOOKMARK : ""),
    );
    await pass(89);
    const before = seen.watches;
    await pass(2);

    expect([before, seen.watches]).toEqual([1, 2]);
    expect(problems).toEqual([]);
    expect(replica.status).toMatchObject({ state: "in sync", heardAt: expect.any(Number) });
    expect(clock.now() - (replica.status.state === "in sync" ? replica.status.heardAt : 0)).toBeLessThan(2_000);
  });

  test("is lost if the server does not answer the next one either", async () => {
    const { replica, problems, seen, pass } = await follow((number, signal) =>
      number === 1 ? silent(signal) : untilAborted(signal),
    );
    await pass(90 + 16);

    expect(seen.watches).toBe(3);
    expect(problems).toEqual([expect.stringContaining("no response within the time limit")]);
    expect(replica.status).toMatchObject({ state: "stale" });
  });
});

describe("an API server, or a proxy before it, that accepts watches and delivers nothing", () => {
  test("is reported after the second one, and what is known grows old, until something comes", async () => {
    let isBuffered = true;
    const { clock, replica, problems, seen, pass } = await follow((_, signal) =>
      silent(signal, isBuffered ? "" : BOOKMARK),
    );
    await pass(179);
    const once = [replica.status.state, problems.length];
    await pass(2);
    const twice = [replica.status.state, problems.length];
    await pass(5 * 60);
    const [state, age] = [replica.status.state, ageOf(replica.status, clock.now())];
    isBuffered = false;
    await pass(100);

    expect([once, twice]).toEqual([
      ["in sync", 0],
      ["stale", 1],
    ]);
    expect(problems[0]).toContain("delivers nothing, not even bookmarks");
    expect([state, age > 5 * 60_000]).toEqual(["stale", true]);
    // One about every 90 seconds.
    expect(seen.watches).toBeLessThan(9);
    expect(replica.status.state).toBe("in sync");
    expect(ageOf(replica.status, clock.now())).toBeLessThan(100_000);
  });

  test("is not meant by one whose watches are closed when they are quiet, before a bookmark is due", async () => {
    const { replica, problems, pass } = await follow((_, signal, clock) => lasting(35_000, signal, clock, ""));
    await pass(5 * 60);

    expect([replica.status.state, problems]).toEqual(["in sync", []]);
  });

  test("is followed again if its revision has gone back meanwhile, as after a restore", async () => {
    let revision = "1000";
    const { seen, replica, pass } = await follow(
      (_, signal) => silent(signal),
      () => revision,
    );
    await pass(5);
    revision = "400";
    const before = seen.lists;
    await pass(95);

    expect(replica.snapshot?.things.revision).toBe("400");
    // Whether the revision is reached, once more, and the list.
    expect(seen.lists - before).toBeLessThan(6);
  });
});

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
}

test("a kind that the API does not have is never old", async () => {
  const clock = new ManualClock();
  const refuse = (): never => {
    throw new Error("the API does not have it");
  };
  const absent = { path: () => undefined, collections: () => [], record: () => undefined };
  const api = { request: refuse, watch: refuse, close: async () => {} };
  const store = openKubeStore({
    ...{ api, close: async () => {} },
    mappings: [{ ...absent, prefix: "/", create: refuse, update: refuse, remove: refuse }],
  });
  const replica = startReplica(store, KINDS, {
    ...{ signal: started.stop.signal, clock, random: () => 1, report: refuse },
  });
  started.note(replica);
  await clock.advance(100);
  await clock.advance(10 * 60_000);

  expect(replica.status.state).toBe("in sync");
  expect(ageOf(replica.status, clock.now())).toBe(0);
});
