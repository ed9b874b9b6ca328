/** A replica on an API server, or a proxy before it, that answers a watch and then does not keep it. */
import { afterEach, describe, expect, test } from "bun:test";
import { meansWith } from "../../../test/support/imitated-api.ts";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { openKubeClient } from "../../kube/client.ts";
import { type Replica, startReplica } from "../replica.ts";
import { anyText } from "./any-text.ts";
import { openKubeStore } from "./store.ts";

const mapping = anyText({ writeAnnotation: "test/write", newMark: () => "mark" });
const KINDS = { things: { prefix: "/", decode: ({ value }: { readonly value: string }) => value } };
const LIST = JSON.stringify({ metadata: { resourceVersion: "7" }, items: [] });

let stop = new AbortController();
let started: Replica<unknown> | undefined;
afterEach(async () => {
  stop.abort();
  await started?.ended;
  stop = new AbortController();
});

describe("a watch that the server ends at once", () => {
  test("is asked for again with growing pauses, reported, and not in sync", async () => {
    const clock = new ManualClock();
    const MOST = 1_000;
    let watches = 0;
    const client = await openKubeClient(
      { apiRoot: "http://api" },
      meansWith({
        elapsed: () => clock.now(),
        fetch: async (url) => {
          if (!url.includes("watch=")) return new Response(LIST);
          watches += 1;
          return new Response(watches > MOST ? "enough" : "", { status: watches > MOST ? 500 : 200 });
        },
      }),
    );
    const store = openKubeStore({ api: client, mappings: [mapping], close: () => client.close() });
    const problems: string[] = [];
    const replica = startReplica(store, KINDS, {
      signal: stop.signal,
      clock,
      random: () => 1,
      report: ({ message }) => void problems.push(message),
    });
    started = replica;
    for (let time = 0; time < 20_000; time += 100) await clock.advance(100);

    // Pauses of 0.1, 0.2, 0.4, ... 10 s.
    expect(watches).toBe(8);
    expect(problems).toHaveLength(8);
    expect(problems.at(-1)).toContain("the server ended the watch at once");
    expect(replica.status).toMatchObject({ state: "stale", failure: { kind: "api-unavailable" } });
    expect(clock.now() - replica.status.since).toBeGreaterThan(19_000);
  });
});
