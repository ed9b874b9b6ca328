import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, statSync } from "node:fs";
import { FedPods } from "../../../test/support/fed-pods.ts";
import { remoteEndpoint } from "../../../test/support/policy-load.ts";
import { pollUntil } from "../../../test/support/poll.ts";
import { TestSidecar } from "../../../test/support/test-sidecar.ts";
import { SIDECAR_PROTOCOL } from "../protocol/sidecar-state.ts";

let pods: FedPods;
beforeEach(() => {
  pods = new FedPods();
});
afterEach(async () => {
  await pods.close();
  expect(pods.problems).toEqual([]);
});

const isReported = (wanted: Readonly<Record<string, string>>) =>
  pollUntil(() => Bun.deepEquals(pods.reported.at(-1), wanted), `${JSON.stringify(wanted)} to be reported`);

function addRemote(index: number): void {
  const { resources } = pods;
  pods.change({ ...resources, endpoints: [...resources.endpoints, remoteEndpoint(index, 0)] });
}

describe("SidecarFeed", () => {
  test("a sidecar gets the whole state of its pod, and reports in when it has applied it", async () => {
    const sidecar = await TestSidecar.connect(pods.addPod(0));
    sidecar.hello("1.2.3");
    const [welcome, update] = await sidecar.hears(2);
    expect(welcome).toEqual({ type: "welcome", protocol: SIDECAR_PROTOCOL, version: "2.0.0" });
    expect(update).toMatchObject({
      type: "update",
      revision: 1,
      addresses: ["10.64.0.0"],
      evaluation: { tiers: [{ name: "default", defaultAction: "Deny", policies: [expect.any(String)] }] },
      policies: { [Object.keys(sidecar.updates[0]?.policies ?? {})[0] ?? ""]: { title: "namespace0/policy0" } },
    });
    expect(pods.reported).toEqual([]);
    sidecar.apply();
    await isReported({ pod0: "1.2.3" });
    expect(pods.feed.facts).toEqual({ reporting: 1, updates: 1, refused: new Map() });
  });

  test("changes are sent one after the other, each when the former is applied, and together what came meanwhile", async () => {
    const sidecar = await pods.addSidecar(0);
    await isReported({ pod0: "1.0.0" });
    addRemote(500);
    await sidecar.hears(3);
    // The sidecar has not applied this one, so none of the next is sent, however long they are known.
    for (const index of [501, 502, 503]) addRemote(index);
    await Bun.sleep(50);
    expect(sidecar.updates).toHaveLength(2);
    sidecar.apply();
    await sidecar.hears(4);
    sidecar.apply();
    expect(sidecar.updates.slice(1).map(({ sets }) => Object.values(sets ?? {}))).toEqual([
      [{ add: ["10.65.1.244"], remove: [] }],
      [{ add: ["10.65.1.245", "10.65.1.246", "10.65.1.247"], remove: [] }],
    ]);
    const { knows } = sidecar;
    expect([...knows.sets.values()].some((members) => members.has("10.65.1.247"))).toBe(true);
  });

  test("a sidecar that disconnects no longer reports in, at once", async () => {
    const sidecar = await pods.addSidecar(0);
    await isReported({ pod0: "1.0.0" });
    const since = performance.now();
    sidecar.close();
    await isReported({});
    expect(performance.now() - since).toBeLessThan(1_000);
  });

  test("a second connection replaces the first", async () => {
    const first = await pods.addSidecar(0);
    await isReported({ pod0: "1.0.0" });
    const second = await TestSidecar.connect(pods.addPod(0));
    second.hello("1.0.1");
    await first.closed();
    await second.hears(2);
    second.apply();
    await isReported({ pod0: "1.0.1" });
    expect(pods.reported).toEqual([{ pod0: "1.0.0" }, {}, { pod0: "1.0.1" }]);
  });

  test("the socket is of the sidecar's user alone, and goes with the volume", async () => {
    const path = pods.addPod(0);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const sidecar = await pods.addSidecar(0);
    await isReported({ pod0: "1.0.0" });
    pods.volumes.delete("uid0");
    expect(pods.reported.at(-1)).toEqual({});
    await sidecar.closed();
    expect(existsSync(path)).toBe(false);
  });

  test.skipIf(process.getuid?.() !== 0)("a process of another user is refused", async () => {
    const sidecar = await TestSidecar.connect(pods.addPod(0, 65_532));
    await sidecar.closed();
    expect(pods.feed.facts.refused).toEqual(new Map([["other user", 1]]));
    expect(sidecar.received).toEqual([]);
  });

  test("a newer sidecar is refused, and learns what to do", async () => {
    const sidecar = await TestSidecar.connect(pods.addPod(0));
    sidecar.hello("9.0.0", SIDECAR_PROTOCOL + 1);
    const [refused] = await sidecar.hears(1);
    await sidecar.closed();
    expect(refused).toEqual({ type: "refused", message: expect.stringContaining("upgrade") });
    expect(pods.feed.facts.refused).toEqual(new Map([["newer protocol", 1]]));
  });

  const HELLO = `{"type":"hello","protocol":1,"version":"1.0.0"}\n`;
  test.each([
    ["says something else first", `{"type":"applied","revision":1}\n`],
    ["says hello twice", `${HELLO}${HELLO}`],
    ["acknowledges what it was not sent", `${HELLO}{"type":"applied","revision":2}\n`],
    ["sends what is not JSON", "\0\x01\x02\n"],
    ["sends a line without an end", "x".repeat(65 * 1024)],
    ["sends nothing but ends of lines", "\n".repeat(65 * 1024)],
  ])("a program that %s is disconnected", async (_, text) => {
    const sidecar = await TestSidecar.connect(pods.addPod(0));
    sidecar.write(text);
    await sidecar.closed();
    expect(pods.feed.facts.refused).toEqual(new Map([["malformed", 1]]));
    expect(pods.reported).toEqual([]);
  });

  test("a sidecar that has applied everything and speaks again is disconnected", async () => {
    const sidecar = await pods.addSidecar(0);
    await isReported({ pod0: "1.0.0" });
    sidecar.write("{");
    await sidecar.closed();
    await isReported({});
  });

  test("a program that does not say hello in time, or does not apply an update, is disconnected", async () => {
    const silent = await TestSidecar.connect(pods.addPod(0));
    const lazy = await pods.addSidecar(1);
    await isReported({ pod1: "1.0.0" });
    pods.skipped += 4_000;
    await Bun.sleep(300);
    expect(silent.isClosed).toBe(false);
    pods.skipped += 2_000;
    await silent.closed();
    const { resources } = pods;
    pods.change({ ...resources, networkPolicies: [] });
    await lazy.hears(3);
    pods.skipped += 11_000;
    await lazy.closed();
    await isReported({});
    expect(pods.feed.facts.refused).toEqual(new Map([["too slow", 2]]));
  });

  test("whole states are limited for all pods together: the next one waits for its turn", async () => {
    await pods.close();
    pods = new FedPods({ wholeStates: { burst: 2, perSecond: 0.1 } });
    await pods.addSidecar(0);
    await pods.addSidecar(1);
    const third = await TestSidecar.connect(pods.addPod(2));
    third.hello();
    await third.hears(1);
    await Bun.sleep(300);
    expect(third.updates).toEqual([]);
    pods.skipped += 10_000;
    await third.hears(2);
  });

  test("the feed that ends tells the kernel nothing: the next agent finds what was reported", async () => {
    const sidecar = await pods.addSidecar(0);
    await isReported({ pod0: "1.0.0" });
    await pods.stop();
    await sidecar.closed();
    expect(pods.reported).toEqual([{ pod0: "1.0.0" }]);
  });

  test("a pod whose endpoint comes later gets its state then", async () => {
    const sidecar = await TestSidecar.connect(pods.addPod(0));
    const { resources } = pods;
    pods.change({ ...resources, endpoints: [] });
    sidecar.hello();
    await sidecar.hears(1);
    pods.change(resources);
    await sidecar.hears(2);
    sidecar.apply();
    await isReported({ pod0: "1.0.0" });
    pods.change({ ...resources, endpoints: [] });
    await isReported({});
  });
});
