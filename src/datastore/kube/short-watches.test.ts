/** A replica on an API server, or a proxy before it, that answers a watch and then does not keep it, or sends nothing. */
import { afterEach, describe, expect, test } from "bun:test";
import { meansWith } from "../../../test/support/imitated-api.ts";
import { ManualClock, timersOn } from "../../../test/support/manual-clock.ts";
import { type Fetch, openKubeClient } from "../../kube/client.ts";
import { LIMITS } from "../../kube/retries.ts";
import { type Replica, startReplica } from "../replica.ts";
import { anyText } from "./any-text.ts";
import { openKubeStore } from "./store.ts";

const mapping = anyText({ writeAnnotation: "test/write", newMark: () => "mark" });
const KINDS = { things: { prefix: "/", decode: ({ value }: { readonly value: string }) => value } };
const LIST = JSON.stringify({ metadata: { resourceVersion: "7" }, items: [] });
const BOOKMARK = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}\n`;

let stop = new AbortController();
let started: Replica<unknown> | undefined;
afterEach(async () => {
  stop.abort();
  await started?.ended;
  stop = new AbortController();
});

/** `watch`: what the server does with the watch of that number, from 1. */
async function follow(
  watch: (number: number, signal: AbortSignal, clock: ManualClock) => Response | Promise<Response>,
) {
  const clock = new ManualClock();
  const seen = { watches: 0, lists: 0 };
  const problems: string[] = [];
  const fetch: Fetch = async (url, { signal }) => {
    if (url.includes("sendInitialEvents=")) return new Response("{}", { status: 422 });
    if (url.includes("watch=")) return watch(++seen.watches, signal ?? stop.signal, clock);
    seen.lists += 1;
    return new Response(LIST);
  };
  const timers = timersOn(clock);
  const client = await openKubeClient(
    { apiRoot: "http://api" },
    meansWith({ elapsed: () => clock.now(), fetch, timers, limits: LIMITS, random: () => 0 }),
  );
  const store = openKubeStore({ api: client, mappings: [mapping], close: () => client.close() });
  const replica = startReplica(store, KINDS, {
    signal: stop.signal,
    clock,
    random: () => 1,
    report: ({ message }) => void problems.push(message),
  });
  started = replica;
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
function lasting(milliseconds: number, signal: AbortSignal, clock: ManualClock): Response {
  const start = async (to: ReadableStreamDefaultController<string>) => {
    to.enqueue(BOOKMARK);
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

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
}
