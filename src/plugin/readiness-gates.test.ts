import { afterAll, describe, expect, test } from "bun:test";
import { rejectionOf } from "../../test/support/thrown-by.ts";
import { awaitReadiness, type GateOptions } from "./readiness-gates.ts";

/** A real server with gates that become ready after some requests. */
const asked: string[] = [];
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const path = new URL(request.url).pathname;
    asked.push(path);
    if (path.startsWith("/together")) await bothAsked(path);
    if (path === "/later" && asked.filter((each) => each === path).length < 3) return new Response("", { status: 503 });
    return new Response("", { status: { "/moved": 302, "/missing": 404, "/broken": 500 }[path] ?? 200 });
  },
});
afterAll(() => server.stop(true));

/** Each of the two responds only after the other was requested too. */
const together = Promise.withResolvers<void>();
async function bothAsked(path: string): Promise<void> {
  if (asked.includes(path === "/together-a" ? "/together-b" : "/together-a")) together.resolve();
  await together.promise;
}

const url = (path: string) => `http://127.0.0.1:${server.port}${path}`;
const NOBODY = "http://127.0.0.1:9/";

/** Waits are recorded, and take no time. */
function meansOf(): GateOptions & { readonly waits: number[]; readonly stop: (reason: unknown) => void } {
  const waits: number[] = [];
  const controller = new AbortController();
  const wait = async (milliseconds: number) => void waits.push(milliseconds);
  const elapsed = () => waits.reduce((sum, each) => sum + each, 0);
  return { waits, wait, elapsed, signal: controller.signal, stop: (reason) => controller.abort(reason) };
}

describe("awaitReadiness()", () => {
  test("returns at once if every gate responds with 2xx or 3xx", async () => {
    const means = meansOf();
    await awaitReadiness([url("/fine"), url("/moved")], means);

    expect(means.waits).toEqual([]);
  });

  test("requests all gates before any of them has responded", async () => {
    const means = meansOf();
    await awaitReadiness([url("/together-a"), url("/together-b")], means);

    expect(means.waits).toEqual([]);
  });

  test("requests a gate every second until it is ready", async () => {
    const means = meansOf();
    await awaitReadiness([url("/later")], means);

    expect(means.waits).toEqual([1000, 1000]);
  });

  test("fails after 30 seconds, and names each gate that is not ready with its last status", async () => {
    const means = meansOf();
    const failure = await rejectionOf(() =>
      awaitReadiness([url("/fine"), url("/missing"), url("/broken"), NOBODY], means),
    );

    expect(failure.kind).toBe("not-ready");
    expect(failure.message).not.toContain("/fine");
    expect(failure.message).toContain(`${url("/missing")} (HTTP status 404)`);
    expect(failure.message).toContain(`${url("/broken")} (HTTP status 500)`);
    expect(failure.message).toContain(`${NOBODY} (`);
  });

  test("stops if its signal is aborted", async () => {
    const means = meansOf();
    const waiting = awaitReadiness([url("/missing")], means);
    const reason = new Error("told to stop");
    means.stop(reason);

    expect(waiting).rejects.toBe(reason);
  });
});
