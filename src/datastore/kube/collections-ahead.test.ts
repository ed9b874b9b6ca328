/** A kind in two collections, one of which is ahead of the other: what was shown of it is never taken back by an older list. */
import { describe, expect, test } from "bun:test";
import { anyTextInTwo } from "../../../test/support/any-text.ts";
import { meansWith } from "../../../test/support/imitated-api.ts";
import { ManualClock, timersOn } from "../../../test/support/manual-clock.ts";
import { startedReplicas } from "../../../test/support/started-replicas.ts";
import { type Fetch, openKubeClient } from "../../kube/client.ts";
import { LIMITS } from "../../kube/retries.ts";
import { startReplica } from "../replica.ts";
import { openKubeStore } from "./store.ts";

const mapping = anyTextInTwo({ writeAnnotation: "test/write", newMark: () => "mark" });
const KINDS = { things: { prefix: "/", decode: ({ value }: { readonly value: string }) => value } };
/** The collection that events are sent to. */
const AHEAD = "othertexts";
const KEY =
  Array.from({ length: 50 }, (_, index) => `/${index}`).find((key) => mapping.path(key)?.includes(`/${AHEAD}/`)) ?? "";

const started = startedReplicas();

interface Answers {
  /** The revision of the copy of a collection, as the server that responds has it. */
  readonly revisionOf: (collection: string, list: number) => string;
  readonly objectsOf?: (collection: string, list: number) => readonly unknown[];
}

/** A server that lists each collection at its own revision, and waits for none that it is asked for. */
async function follow({ revisionOf, objectsOf = () => [] }: Answers) {
  const clock = new ManualClock();
  const asked: string[] = [];
  const noted: string[] = [];
  const shown: unknown[] = [];
  const lists = new Map<string, number>();
  let send: (event: unknown) => void = () => {};
  const fetch: Fetch = async (url, { signal }) => {
    const { pathname, searchParams } = new URL(url);
    const collection = pathname.split("/").at(-1) ?? "";
    if (searchParams.has("sendInitialEvents")) return new Response("{}", { status: 422 });
    if (searchParams.has("watch")) {
      return watched(signal ?? started.stop.signal, (sending) => {
        if (collection === AHEAD) send = sending;
      });
    }
    const revision = searchParams.get("resourceVersion");
    // The question for the present revision.
    if (searchParams.get("limit") === "1") return listAt("2000", []);
    asked.push(`${collection} ${revision}`);
    const list = (lists.get(collection) ?? 0) + 1;
    lists.set(collection, list);
    return listAt(revisionOf(collection, list), objectsOf(collection, list));
  };
  const client = await openKubeClient(
    { apiRoot: "http://api" },
    meansWith({ elapsed: () => clock.now(), fetch, timers: timersOn(clock), limits: LIMITS, random: () => 0 }),
  );
  const store = openKubeStore({ api: client, mappings: [mapping], close: () => client.close() });
  const replica = startReplica(store, KINDS, {
    ...{ signal: started.stop.signal, clock, random: () => 1 },
    seen: { find: () => undefined, note: (_, revision) => void noted.push(revision) },
  });
  started.note(replica);
  const collect = async () => {
    for await (const { snapshot } of replica.updates()) shown.push(Object.fromEntries(snapshot.things));
  };
  void collect();
  const pass = async (seconds: number) => {
    for (let time = 0; time < seconds * 10; time += 1) await clock.advance(100);
  };
  await pass(1);
  return { replica, asked, noted, shown, pass, send: (type: string, object: unknown) => send({ type, object }) };
}

function listAt(resourceVersion: string, items: readonly unknown[]): Response {
  return new Response(JSON.stringify({ metadata: { resourceVersion }, items }));
}

function watched(signal: AbortSignal, opened: (send: (event: unknown) => void) => void): Response {
  const start = (to: ReadableStreamDefaultController<string>) => {
    opened((event) => to.enqueue(`${JSON.stringify(event)}\n`));
    signal.addEventListener("abort", () => to.error(signal.reason), { once: true });
  };
  return new Response(new ReadableStream<string>({ start }).pipeThrough(new TextEncoderStream()));
}

function objectAt(resourceVersion: string): unknown {
  const name = mapping.path(KEY)?.split("/").at(-1);
  return {
    apiVersion: "contract.test/v1",
    kind: "OtherText",
    metadata: { name, resourceVersion, uid: "uid" },
    spec: { key: KEY, value: `of ${resourceVersion}` },
  };
}

const GONE = { kind: "Status", code: 410 };

describe("a list after lost history asks for what is not older than what was shown", () => {
  test("by an event of the collection that is ahead", async () => {
    const { asked, noted, shown, send, pass } = await follow({
      revisionOf: (_, list) => (list === 1 ? "500" : "1000"),
      objectsOf: (collection, list) => (list > 1 && collection === AHEAD ? [objectAt("1000")] : []),
    });
    send("ADDED", objectAt("1000"));
    await pass(1);
    expect(noted.at(-1)).toBe("1000");

    send("ERROR", GONE);
    await pass(5);
    expect(asked.slice(2)).toEqual(["texts 1000", "othertexts 1000"]);
    expect(shown).toEqual([{}, { [KEY]: "of 1000" }]);
  });

  test("by a deletion in the collection that is ahead", async () => {
    const { asked, noted, send, pass } = await follow({
      revisionOf: (_, list) => (list === 1 ? "500" : "1000"),
      objectsOf: (collection, list) => (list === 1 && collection === AHEAD ? [objectAt("400")] : []),
    });
    send("DELETED", objectAt("900"));
    await pass(1);
    expect(noted.at(-1)).toBe("900");

    send("ERROR", GONE);
    await pass(5);
    expect(asked.slice(2)).toEqual(["texts 900", "othertexts 900"]);
  });

  test("by a list of the collection that is ahead, also if that shows nothing", async () => {
    const { asked, noted, send, pass } = await follow({
      revisionOf: (collection, list) => (list === 1 && collection !== AHEAD ? "500" : "900"),
    });
    expect(noted).toEqual(["900"]);

    send("ERROR", GONE);
    await pass(5);
    expect(asked.slice(2)).toEqual(["texts 900", "othertexts 900"]);
  });

  test("and begins anew with what a restored datastore has", async () => {
    const { noted, send, pass } = await follow({ revisionOf: (_, list) => (list === 1 ? "500" : "300") });
    send("ADDED", objectAt("1000"));
    await pass(1);
    send("ERROR", GONE);
    await pass(5);

    expect(noted).toEqual(["500", "1000", "300"]);
  });
});
