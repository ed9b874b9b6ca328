import { describe, expect, test } from "bun:test";
import { rejectionOf } from "../../../../test/support/thrown-by.ts";
import { objectPath } from "../../../release/object-kinds.ts";
import type { StepSite } from "../../engine/step.ts";
import { allPodsStep } from "./step.ts";

const NAME = "controllers";
const VERSION = "v3.29.0";
const STALL_SECONDS = 600;
const DAY = 24 * 3_600;
const DEPLOYMENT = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: NAME, namespace: "kube-system" } };

interface Look {
  readonly ready: number;
  readonly pod: string;
  readonly state: object;
}

/** What the API shows at each second. */
function siteOf(lookAt: (second: number) => Look) {
  const ended = new AbortController();
  const lines: string[] = [];
  let second = 0;
  const deployment = () => ({
    ...DEPLOYMENT,
    metadata: { ...DEPLOYMENT.metadata, generation: 1 },
    spec: { replicas: 2, template: { spec: { containers: [{ name: NAME, image: `registry.example/a:${VERSION}` }] } } },
    status: { observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: lookAt(second).ready },
  });
  const pod = () => ({
    metadata: { name: lookAt(second).pod },
    spec: { containers: [{ name: NAME }] },
    status: { phase: "Running", containerStatuses: [{ name: NAME, ready: false, state: lookAt(second).state }] },
  });
  const site = {
    signal: ended.signal,
    now: () => new Date(second * 1_000),
    wait: async (milliseconds: number) => {
      second += milliseconds / 1_000;
      if (second > DAY) ended.abort(new Error("no end after a day"));
    },
    progress: (line: string) => lines.push(line),
    options: { stallSeconds: STALL_SECONDS },
    facts: { method: { kind: "manifest", network: "own" }, datastore: "kubernetes", namespace: "kube-system" },
    release: { version: VERSION, manifest: () => ({ settings: [], components: [DEPLOYMENT] }) },
    objects: {
      read: async (path: string) => (path === objectPath(DEPLOYMENT) ? deployment() : undefined),
      list: async () => [pod()],
    },
  };
  return { site: site as unknown as StepSite, lines, seconds: () => second };
}

const RUNNING = { running: { startedAt: "2026-01-01T00:00:00Z" } };
const backOff = (seconds: number) => ({
  waiting: { reason: "CrashLoopBackOff", message: `back-off ${seconds}s restarting failed container` },
});
const PLAN = { step: "all-pods", changes: [], obstacles: [], notes: [], estimatedSeconds: 0, data: {} };

describe("allPodsStep", () => {
  test.each<[string, (second: number) => Look]>([
    [
      "run for a moment, and crash again",
      (second) => ({ ready: 0, pod: "a", state: second % 300 < 10 ? RUNNING : backOff(300) }),
    ],
    ["wait longer and longer", (second) => ({ ready: 0, pod: "a", state: backOff(second) })],
    ["are made again under other names", (second) => ({ ready: 0, pod: `a-${second}`, state: RUNNING })],
    ["are ready for a moment", (second) => ({ ready: second % 300 < 10 ? 1 : 0, pod: "a", state: backOff(10) })],
  ])("ends with an explanation if pods %s, for ever", async (_, lookAt) => {
    const { site, seconds } = siteOf(lookAt);
    const failure = await rejectionOf(() => allPodsStep.act(site, PLAN));

    expect(failure).toMatchObject({ kind: "not-ready" });
    expect(seconds()).toBeLessThanOrEqual(STALL_SECONDS + 20);
  });

  test("waits as long as more pods become ready", async () => {
    const { site, lines, seconds } = siteOf((second) => ({
      ready: Math.min(2, Math.floor(second / (STALL_SECONDS - 2))),
      pod: "a",
      state: RUNNING,
    }));
    await allPodsStep.act(site, PLAN);

    expect(seconds()).toBe(2 * (STALL_SECONDS - 2));
    expect(lines).toEqual([expect.stringContaining("0 of 2"), expect.stringContaining("1 of 2")]);
  });
});
