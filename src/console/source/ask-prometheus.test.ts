import { describe, expect, test } from "bun:test";
import { imitateApi, meansWith } from "../../../test/support/imitated-api.ts";
import { ManualClock, settled, timersOn } from "../../../test/support/manual-clock.ts";
import { pollUntil } from "../../../test/support/poll.ts";
import { identity } from "../../identity.ts";
import { openKubeClient } from "../../kube/client.ts";
import { LIMITS } from "../../kube/retries.ts";
import { alertGroups } from "../../release/alerts.ts";
import { AskedPrometheus } from "./ask-prometheus.ts";

const SERVICE = { namespace: "monitoring", service: "prometheus", port: 9090 };
const [RULE] = alertGroups(identity).flatMap(({ rules }) => rules);
const FIRING = JSON.stringify({
  status: "success",
  data: { alerts: [{ labels: { alertname: RULE?.alert }, state: "firing" }] },
});

type Reply = (request: Request) => Response | Promise<Response>;

/** An API server whose proxy answers like this, and a reader of it; time stands still until `clock` is moved. */
async function asked(reply: Reply) {
  const api = imitateApi(reply);
  const clock = new ManualClock();
  const client = await openKubeClient({ apiRoot: api.url, token: "reader" }, meansWith({ limits: LIMITS }));
  const prometheus = new AskedPrometheus({
    ...{ client, service: SERVICE, now: () => new Date(clock.now()), timers: timersOn(clock) },
    wait: (milliseconds) => clock.wait(milliseconds, new AbortController().signal),
  });
  return {
    ...{ api, clock, prometheus },
    async [Symbol.asyncDispose]() {
      await client.close();
      api[Symbol.dispose]();
    },
  };
}

async function answerTo(reply: Reply) {
  await using site = await asked(reply);
  return (await site.prometheus.alerts()).found;
}

describe("AskedPrometheus", () => {
  test("asks the API server for the alerts, with the token of the reader", async () => {
    await using site = await asked(() => new Response(FIRING));
    expect((await site.prometheus.alerts()).found).toMatchObject({ kind: "firing", more: 0, alerts: [{}] });
    const [request] = site.api.requests;
    expect(request?.url).toBe(
      `${site.api.url}/api/v1/namespaces/monitoring/services/prometheus:9090/proxy/api/v1/alerts`,
    );
    expect(request?.headers.get("authorization")).toBe("Bearer reader");
  });

  test("asks once in half a minute, whatever the answer is, and at once after the rights have changed", async () => {
    await using site = await asked(() => new Response("", { status: 503, headers: { "retry-after": "1" } }));
    const count = async () => {
      await site.prometheus.alerts();
      return site.api.requests.length;
    };
    expect([await count(), await count()]).toEqual([1, 1]);
    await site.clock.advance(29_999);
    expect(await count()).toBe(1);
    await site.clock.advance(1);
    expect(await count()).toBe(2);
    site.prometheus.forget();
    expect(await count()).toBe(3);
  });

  test("does not hold health up: a slow answer is unknown at first, and in the next page", async () => {
    const { promise, resolve } = Promise.withResolvers<Response>();
    await using site = await asked(() => promise);
    const first = site.prometheus.alerts();
    await settled();
    await site.clock.advance(500);
    expect((await first).found).toEqual({ kind: "unknown", reason: "waiting for Prometheus" });
    resolve(new Response(FIRING));
    await pollUntil(async () => {
      const next = site.prometheus.alerts();
      await site.clock.advance(500);
      return (await next).found.kind === "firing";
    }, "the answer");
    expect(site.api.requests).toHaveLength(1);
  });

  test("gives up after five seconds, and shows what fired before until then", async () => {
    let isSlow = false;
    await using site = await asked(() => (isSlow ? new Promise(() => {}) : new Response(FIRING)));
    expect((await site.prometheus.alerts()).found.kind).toBe("firing");
    isSlow = true;
    await site.clock.advance(30_000);
    const foundAfter = async (milliseconds: number) => {
      const found = site.prometheus.alerts();
      await settled();
      await site.clock.advance(milliseconds);
      return (await found).found;
    };
    expect((await foundAfter(500)).kind).toBe("firing");
    await pollUntil(() => site.api.requests.length === 2, "the second question");
    await site.clock.advance(4_500);
    await pollUntil(async () => (await foundAfter(500)).kind === "unknown", "the time limit");
    expect(await foundAfter(500)).toMatchObject({ reason: "Prometheus has not answered within 5 seconds" });
    expect(site.api.requests).toHaveLength(2);
  });

  test("names what is hidden from a reader whom the API server refuses, and nobody else's refusal", async () => {
    const status = { kind: "Status", reason: "Forbidden", message: "services is forbidden", code: 403 };
    expect(await answerTo(() => Response.json(status, { status: 403 }))).toEqual({
      ...{ kind: "hidden", what: "alerts of Prometheus (get of services/proxy in monitoring)" },
    });
    expect((await answerTo(() => new Response("no", { status: 403 }))).kind).toBe("unknown");
  });

  test("a refusal of credentials by Prometheus is not one of the reader's token", async () => {
    expect(await answerTo(() => new Response("who are you", { status: 401 }))).toMatchObject({
      ...{ kind: "unknown", reason: "Prometheus wants credentials, and gets none (401 Unauthorized)" },
    });
  });

  test("follows no redirect, and shows only where it leads to", async () => {
    let followed = 0;
    const found = await answerTo((request) => {
      if (request.url.includes("/elsewhere")) followed += 1;
      return Response.redirect(new URL("/elsewhere?secret=1", request.url).href, 302);
    });
    expect(found).toMatchObject({ kind: "unknown", reason: expect.stringContaining("it redirects to") });
    expect([followed, JSON.stringify(found).includes("secret")]).toEqual([0, false]);
  });

  test.each([
    ["too much", () => new Response("x".repeat(5_000_000)), "is larger than 4194304 bytes"],
    ["too much once it is unpacked", () => packed("x".repeat(5_000_000)), "is larger than 4194304 bytes"],
    ["what is not an answer", () => new Response("<html>"), "is not JSON"],
    ["an error", () => Response.json({ message: 'services "prometheus" not found' }, { status: 404 }), "not found"],
    ["a long error", () => new Response("y".repeat(10_000), { status: 500 }), "yyyy"],
  ])("takes %s as unknown, with a short reason", async (_title, reply, reason) => {
    const found = await answerTo(reply);
    expect(found).toMatchObject({ kind: "unknown", reason: expect.stringContaining(reason) });
    expect(JSON.stringify(found).length).toBeLessThan(300);
  });
});

function packed(text: string): Response {
  return new Response(Bun.gzipSync(text), { headers: { "content-encoding": "gzip" } });
}
