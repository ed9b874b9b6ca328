/** Whatever the programs in a pod do at its socket, the sidecars of other pods are fed. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { FedPods } from "../../../test/support/fed-pods.ts";
import { remoteEndpoint } from "../../../test/support/policy-load.ts";
import { pollUntil } from "../../../test/support/poll.ts";
import { TestSidecar } from "../../../test/support/test-sidecar.ts";

/** Of one run, and the same in each. */
const SEED = 20;

let pods: FedPods;
let honest: TestSidecar;

beforeEach(async () => {
  pods = new FedPods();
  honest = await pods.addSidecar(1);
});

/** The sidecar of another pod learns of a change at once, and alone it reports in. */
afterEach(async () => {
  const { resources } = pods;
  const count = honest.updates.length;
  pods.change({ ...resources, endpoints: [...resources.endpoints, remoteEndpoint(60_000, 1)] });
  const since = performance.now();
  await pollUntil(() => honest.updates.length > count, "an update of the other pod");
  expect(performance.now() - since).toBeLessThan(1_000);
  expect(honest.isClosed).toBe(false);
  expect(Object.keys(pods.reported.at(-1) ?? {})).toEqual(["pod1"]);
  await pods.close();
  expect(pods.problems).toEqual([]);
});

test("1,000 connections at once", async () => {
  const path = pods.addPod(0);
  const attempts = await Promise.allSettled(Array.from({ length: 1_000 }, () => TestSidecar.connect(path)));
  const connected = attempts.flatMap((attempt) => (attempt.status === "fulfilled" ? [attempt.value] : []));
  await pollUntil(() => connected.filter(({ isClosed }) => !isClosed).length <= 4, "all but a few to be disconnected");
  pods.skipped += 6_000;
  await pollUntil(() => connected.every(({ isClosed }) => isClosed), "all to be disconnected");
  expect(pods.feed.facts.refused.get("too many")).toBeGreaterThan(90);
});

test("random bytes, and parts of what sidecars say", async () => {
  const random = randomNumbers(SEED);
  const words = [
    `{"type":"hello","protocol":1,"version":"1.0.0"}`,
    `{"type":"applied","revision":1}`,
    "{",
    "\n",
    "\0",
    "é",
  ];
  for (let round = 0; round < 60; round += 1) {
    pods.skipped += 1_000;
    const peer = await TestSidecar.connect(pods.addPod(0));
    for (let part = 0; part < 5; part += 1) {
      const noise = Uint8Array.from({ length: random(200) }, () => random(256));
      peer.write(random(3) === 0 ? noise : (words[random(words.length)] ?? ""));
      if (random(3) === 0) await Bun.sleep(1);
    }
    peer.close();
  }
});

test("a line that never ends", async () => {
  const peer = await TestSidecar.connect(pods.addPod(0));
  const part = "x".repeat(100_000);
  for (let count = 0; count < 200 && !peer.isClosed; count += 1) {
    peer.write(part);
    await Bun.sleep(0);
  }
  await peer.closed();
});

test("a sidecar that never reads a large state", async () => {
  const { resources } = pods;
  const others = Array.from({ length: 20_000 }, (_, index) => remoteEndpoint(1_000 + index, 0));
  pods.change({ ...resources, endpoints: [...resources.endpoints, ...others] });
  const peer = await TestSidecar.connect(pods.addPod(0));
  peer.pause();
  peer.hello();
  await pollUntil(() => pods.feed.facts.updates === 2, "the state to be sent");
  pods.change(resources);
  pods.change({ ...resources, endpoints: [...resources.endpoints, ...others] });
  pods.skipped += 11_000;
  await pollUntil(() => pods.feed.facts.refused.get("too slow") === 1, "its end");
  peer.close();
});

test("a sidecar that connects again and again", async () => {
  const path = pods.addPod(0);
  const since = performance.now();
  for (let count = 0; count < 60; count += 1) {
    const peer = await TestSidecar.connect(path);
    peer.hello();
    await peer.hears(1);
    peer.close();
  }
  const seconds = (performance.now() - since) / 1_000;
  // That of the other pod, the first five, and one a second.
  expect(pods.feed.facts.updates).toBeLessThanOrEqual(1 + 5 + Math.ceil(seconds) + 1);
});

/** The same sequence for the same seed. */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
