import { describe, expect, test } from "bun:test";
import type { KubeRequest } from "../../kube/api.ts";
import { keepNetworkAvailable } from "./keep-network-available.ts";

/** The requests, and the waits, while `arePodsRouted` returns these values one after the other. */
async function run(routed: readonly boolean[]) {
  const stop = new AbortController();
  const done: string[] = [];
  let round = 0;
  await keepNetworkAvailable(
    {
      node: "node-a",
      client: {
        async request({ method }: KubeRequest) {
          done.push(method);
          return { status: 200, text: "{}" };
        },
      },
      arePodsRouted: () => routed[round] ?? false,
      now: () => new Date(0),
      async wait(milliseconds) {
        done.push(`${milliseconds / 1_000} s`);
        round += 1;
        if (round === routed.length) stop.abort();
      },
      log: () => {},
      problems: { report: expect.unreachable, forget: () => {} },
    },
    stop.signal,
  );
  return done;
}

describe("keepNetworkAvailable()", () => {
  test("says nothing until the routes are set", async () => {
    expect(await run([false, false, true])).toEqual(["1 s", "1 s", "GET", "PATCH", "300 s"]);
  });

  test("says nothing any more if pods are no longer routed by us", async () => {
    expect(await run([true, false, false])).toEqual(["GET", "PATCH", "300 s", "1 s", "1 s"]);
  });
});
