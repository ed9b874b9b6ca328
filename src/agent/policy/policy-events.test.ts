import { describe, expect, test } from "bun:test";
import { pollUntil } from "../../../test/support/poll.ts";
import { API_VERSION } from "../../identity.ts";
import type { KubeRequest } from "../../kube/api.ts";
import { onceEach } from "../../log/once-each.ts";
import { NETWORK_POLICY } from "../../model/kinds.ts";
import { type ClosedPolicy, eventOf, PolicyEvents } from "./policy-events.ts";

const NOW = new Date("2026-11-17T12:00:00.250Z");
const closed = (name: string, reason = "it is too large", namespace = "shop"): ClosedPolicy => ({
  key: NETWORK_POLICY.key({ namespace, name }),
  reason,
});

describe("eventOf()", () => {
  test("is about the policy, in its namespace", () => {
    expect(eventOf(closed("large"), { node: "node-1", now: NOW })).toMatchObject({
      metadata: { namespace: "shop", name: expect.stringMatching(/^vendor-policy-[0-9a-f]{16}$/) },
      involvedObject: { apiVersion: API_VERSION, kind: "NetworkPolicy", namespace: "shop", name: "large" },
      type: "Warning",
      message: "It denies more than it says: it is too large",
      source: { component: "vendor-node", host: "node-1" },
      firstTimestamp: "2026-11-17T12:00:00Z",
    });
  });

  test("names the orchestrator's policy that a copy is made of", () => {
    const { involvedObject } = eventOf(closed("knp.default.large"), { node: "node-1", now: NOW });
    expect(involvedObject).toMatchObject({ apiVersion: "networking.k8s.io/v1", name: "large" });
  });

  test("has the same name on all nodes, and another one for another policy or reason", () => {
    const nameOf = (policy: ClosedPolicy, node: string) => eventOf(policy, { node, now: NOW }).metadata.name;
    expect(nameOf(closed("a"), "node-1")).toBe(nameOf(closed("a"), "node-2"));
    expect(nameOf(closed("a"), "node-1")).not.toBe(nameOf(closed("a", "another reason"), "node-1"));
    expect(nameOf(closed("a"), "node-1")).not.toBe(nameOf(closed("b"), "node-1"));
  });
});

describe("PolicyEvents", () => {
  /** The loop waits until the test lets it go on. */
  function started(statuses: readonly number[] = []) {
    const sent: string[] = [];
    const reports: string[] = [];
    const waits: { readonly milliseconds: number; readonly resolve: () => void }[] = [];
    const answers = [...statuses];
    const time = { elapsed: 0 };
    const request = async ({ path, body }: KubeRequest) => {
      sent.push(`${path} ${JSON.parse(body ?? "").involvedObject.name}`);
      return { status: answers.shift() ?? 201, text: "" };
    };
    const wait = (milliseconds: number, signal: AbortSignal) =>
      new Promise<void>((resolve) => {
        if (signal.aborted) return resolve();
        signal.addEventListener("abort", () => resolve());
        waits.push({ milliseconds, resolve });
      });
    const events = new PolicyEvents({
      openClient: async () => ({ request, close: async () => {} }),
      clock: { now: () => NOW, elapsed: () => time.elapsed, random: () => 0.5, wait },
      ...{ node: "node-1", reports: onceEach((message) => void reports.push(message)) },
    });
    const stopping = new AbortController();
    const ended = events.run(stopping.signal);
    const reached = (milliseconds: number) =>
      pollUntil(() => waits.some((each) => each.milliseconds === milliseconds), `a wait of ${milliseconds} ms`);
    const pass = async (milliseconds: number) => {
      await reached(milliseconds);
      for (const each of waits.splice(0)) each.resolve();
    };
    const end = () => {
      stopping.abort();
      return ended;
    };
    return { events, sent, reports, time, reached, pass, end };
  }

  const [SPREAD, PACE, REPEAT] = [5_000, 60_000, 65 * 60_000];
  const NODES = 3;
  const path = "/api/v1/namespaces/shop/events";

  test("tells the namespaces in turn: one with many policies keeps no other from its event", async () => {
    const { events, sent, pass, end } = started();
    const many = ["a", "b", "c"].map((name) => closed(name));
    events.update([...many, closed("d", "too large", "other")], NODES);
    for (let count = 1; count <= 3; count++) {
      await pass(SPREAD);
      await pollUntil(() => sent.length === count, "the next event");
      await pass(PACE);
    }
    await end();

    expect(sent.map((each) => each.split(" ")[1])).toEqual(["a", "d", "b"]);
  });

  test("tells each policy once, after a random time, and one a minute", async () => {
    const { events, sent, pass, end } = started();
    events.update([closed("a"), closed("b")], NODES);
    expect(sent).toEqual([]);
    await pass(SPREAD);
    await pollUntil(() => sent.length === 1, "the first event");
    events.update([closed("a"), closed("b")], NODES);
    await pass(PACE);
    await pass(SPREAD);
    await pollUntil(() => sent.length === 2, "the second event");
    await pass(PACE);
    events.update([closed("a"), closed("b")], NODES);
    await end();

    expect(sent).toEqual([`${path} a`, `${path} b`]);
  });

  test("tells it again about every hour while it lasts, and at once if the reason is another one", async () => {
    const { events, sent, time, pass, end } = started();
    const told = async (count: number) => {
      await pass(SPREAD);
      await pollUntil(() => sent.length === count, `event ${count}`);
      await pass(PACE);
    };
    events.update([closed("a")], NODES);
    await told(1);
    time.elapsed = REPEAT;
    await pass(REPEAT);
    await told(2);
    events.update([closed("a", "another reason")], NODES);
    await told(3);
    await end();

    expect(sent).toEqual([`${path} a`, `${path} a`, `${path} a`]);
  });

  test("waits the longer the more nodes there are", async () => {
    const { events, sent, pass, end } = started();
    events.update([closed("a")], 5_000);
    await pass(50_000);
    await pollUntil(() => sent.length === 1, "the event");
    await end();
  });

  test("reports a failure once, and again after an event was written", async () => {
    const { events, reports, pass, end } = started([403, 403, 201, 403]);
    events.update([closed("a"), closed("b")], NODES);
    for (let count = 1; count <= 4; count++) {
      await pass(SPREAD);
      await pass(PACE);
    }
    await end();

    expect(reports.length).toBe(2);
  });

  test("tells a policy that was closed again", async () => {
    const { events, sent, pass, end } = started();
    for (const round of [1, 2]) {
      events.update([closed("a")], NODES);
      await pass(SPREAD);
      await pollUntil(() => sent.length === round, `event ${round}`);
      events.update([], NODES);
      await pass(PACE);
    }
    await end();

    expect(sent).toEqual([`${path} a`, `${path} a`]);
  });

  test("does not tell a policy that was opened meanwhile", async () => {
    const { events, sent, reached, pass, end } = started();
    events.update([closed("a")], NODES);
    await reached(SPREAD);
    events.update([], NODES);
    await pass(SPREAD);
    await end();

    expect(sent).toEqual([]);
  });

  test("tells it again if the API did not take it", async () => {
    const { events, sent, pass, end } = started([503]);
    events.update([closed("a")], NODES);
    for (let count = 1; count <= 2; count++) {
      await pass(SPREAD);
      await pollUntil(() => sent.length === count, "an attempt");
      await pass(PACE);
    }
    await end();

    expect(sent).toEqual([`${path} a`, `${path} a`]);
  });

  test("is content if another node was first, and reports a refusal", async () => {
    const { events, reports, sent, pass, end } = started([409, 403]);
    events.update([closed("a"), closed("b")], NODES);
    await pass(SPREAD);
    await pass(PACE);
    expect(reports).toEqual([]);
    await pass(SPREAD);
    await pass(PACE);
    await end();

    expect([sent.length, reports]).toEqual([2, [expect.stringContaining("status 403")]]);
  });
});
