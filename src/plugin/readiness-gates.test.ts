import { afterAll, describe, expect, test } from "bun:test";
import { rejectionOf } from "../../test/support/thrown-by.ts";
import { awaitReadiness, type GateMeans } from "./readiness-gates.ts";

/** A real server whose gates open by themselves. */
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

/** Either of the two answers only once the other has been asked as well. */
const together = Promise.withResolvers<void>();
async function bothAsked(path: string): Promise<void> {
  if (asked.includes(path === "/together-a" ? "/together-b" : "/together-a")) together.resolve();
  await together.promise;
}

const url = (path: string) => `http://127.0.0.1:${server.port}${path}`;
const NOBODY = "http://127.0.0.1:9/";

/** Waits are told, and take no time. */
function meansOf(): GateMeans & { readonly waits: number[]; readonly stop: (reason: unknown) => void } {
  const waits: number[] = [];
  const controller = new AbortController();
  const wait = async (milliseconds: number) => void waits.push(milliseconds);
  const elapsed = () => waits.reduce((sum, each) => sum + each, 0);
  return { waits, wait, elapsed, signal: controller.signal, stop: (reason) => controller.abort(reason) };
}

describe("awaitReadiness()", () => {
  test("goes on at once when every gate answers 2xx or 3xx", async () => {
    const means = meansOf();
    await awaitReadiness([url("/fine"), url("/moved")], means);

    expect(means.waits).toEqual([]);
  });

  test("asks all gates before any of them has answered", async () => {
    const means = meansOf();
    await awaitReadiness([url("/together-a"), url("/together-b")], means);

    expect(means.waits).toEqual([]);
  });

  test("asks again each second until the gate opens", async () => {
    const means = meansOf();
    await awaitReadiness([url("/later")], means);

    expect(means.waits).toEqual([1000, 1000]);
  });

  test("gives up after 30 seconds, and names each gate that is not ready with its last answer", async () => {
    const means = meansOf();
    const failure = await rejectionOf(() =>
      awaitReadiness([url("/fine"), url("/missing"), url("/broken"), NOBODY], means),
    );

    expect(failure.kind).toBe("not-ready");
    expect(failure.message).not.toContain("/fine");
    expect(failure.message).toContain(`${url("/missing")} (it answered 404)`);
    expect(failure.message).toContain(`${url("/broken")} (it answered 500)`);
    expect(failure.message).toContain(`${NOBODY} (`);
  });

  test("stops when the process is told to stop", async () => {
    const means = meansOf();
    const waiting = awaitReadiness([url("/missing")], means);
    const reason = new Error("told to stop");
    means.stop(reason);

    expect(waiting).rejects.toBe(reason);
  });
});
