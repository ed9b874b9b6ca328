import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { ControllersInMemory } from "../../../test/support/controllers-in-memory.ts";
import { pollUntil } from "../../../test/support/poll.ts";
import { SYSTEM_CLOCK } from "../../datastore/replica/clock.ts";
import { sourceOf } from "../../datastore/replica/kinds.ts";
import { startReplica } from "../../datastore/replica.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { ENDPOINT } from "../../model/kinds.ts";
import { POD_RECORDS_PREFIX, podRecordKey, podRecordOf, readPodRecord } from "../../model/pod-record.ts";
import { followPodEndpoints } from "./follow-pod-endpoints.ts";

const NODE = "node-1";
const KEY = ENDPOINT.key({ namespace: "shop", name: "node--1-k8s-web-eth0" });
const POD_KEY = podRecordKey({ namespace: "shop", name: "web" });

let site: ControllersInMemory;
let stop: AbortController;
let ended: Promise<unknown>;
let commits: number;
const reports: string[] = [];

beforeEach(() => {
  site = new ControllersInMemory();
  commits = 0;
});
afterEach(async () => {
  stop.abort();
  await ended;
  await site.end();
});

function startAgent({ refuses = (): boolean => false } = {}) {
  stop = new AbortController();
  const { signal } = stop;
  const pods = startReplica(
    site.orchestrator,
    { pods: { prefix: POD_RECORDS_PREFIX, decode: ({ key, value }) => readPodRecord(value, key) } },
    { signal },
  );
  const endpoints = startReplica(site.store, { endpoints: sourceOf(ENDPOINT) }, { signal });
  const following = followPodEndpoints(pods.updates(), endpoints.updates(), {
    node: NODE,
    store: {
      commit: async (changes) => {
        commits += 1;
        if (refuses()) throw new Error("no datastore");
        return site.store.commit(changes);
      },
    },
    report: (message) => void reports.push(message),
    forgetProblems: () => {},
    wait: SYSTEM_CLOCK.wait,
    signal,
  });
  ended = Promise.all([following, pods.ended, endpoints.ended]);
}

function pod(more: { readonly labels?: object; readonly address?: string; readonly phase?: string } = {}) {
  const { labels = { app: "web" }, address = "10.0.0.5", phase = "Running" } = more;
  return podRecordOf({
    metadata: { name: "web", namespace: "shop", uid: "u1", creationTimestamp: "2026-01-01T00:00:00Z", labels },
    spec: { nodeName: "kube-1", serviceAccountName: "default", containers: [] },
    status: { phase, podIP: address, podIPs: address === "" ? [] : [{ ip: address }] },
  });
}

describe("the endpoint of a pod that another plugin has connected", () => {
  test("is recorded as the plugin would do it, without container and interface", async () => {
    startAgent();
    await site.putObject(POD_KEY, pod());
    await site.until(KEY, (found) => found !== undefined);

    expect(await site.record(KEY)).toEqual({
      apiVersion: API_VERSION,
      kind: "WorkloadEndpoint",
      metadata: {
        name: "node--1-k8s-web-eth0",
        namespace: "shop",
        uid: "u1",
        creationTimestamp: "2026-01-01T00:00:00Z",
        labels: {
          app: "web",
          [`${identity.labelPrefix}namespace`]: "shop",
          [`${identity.labelPrefix}orchestrator`]: "k8s",
          [`${identity.labelPrefix}serviceaccount`]: "default",
        },
        annotations: { [`${identity.annotationPrefix}ipAddrsNoIpam`]: '["10.0.0.5"]' },
      },
      spec: {
        orchestrator: "k8s",
        node: NODE,
        pod: "web",
        endpoint: "eth0",
        serviceAccountName: "default",
        profiles: ["kns.shop", "ksa.shop.default"],
        ipNetworks: ["10.0.0.5/32"],
      },
    });
  });

  test("follows the pod: its labels, its address, its end; and goes with it", async () => {
    startAgent();
    await site.putObject(POD_KEY, pod());
    await site.until(KEY, (found) => found?.metadata.labels.app === "web");
    await site.putObject(POD_KEY, pod({ labels: { app: "db" } }));
    await site.until(KEY, (found) => found?.metadata.labels.app === "db");
    await site.putObject(POD_KEY, pod({ address: "10.0.0.6" }));
    await site.until(KEY, (found) => found?.spec.ipNetworks[0] === "10.0.0.6/32");
    await site.putObject(POD_KEY, pod({ phase: "Succeeded" }));
    await site.until(KEY, (found) => found?.status?.phase === "Succeeded");
    await site.deleteObject(POD_KEY);
    await site.until(KEY, (found) => found === undefined);
  });

  test("is not fought over with the controllers", async () => {
    site.start();
    startAgent();
    await site.putObject(POD_KEY, pod());
    await site.until(KEY, (found) => found !== undefined);
    await site.putObject(POD_KEY, pod({ labels: { app: "db" } }));
    await site.until(KEY, (found) => found?.metadata.labels.app === "db");
    // Whatever the one would answer to the other comes before the endpoint of a further pod.
    const last = { ...pod(), name: "last" };
    await site.putObject(podRecordKey(last), last);
    await site.until(
      ENDPOINT.key({ namespace: "shop", name: "node--1-k8s-last-eth0" }),
      (found) => found !== undefined,
    );

    expect(commits).toBeLessThanOrEqual(4);
    expect(site.logged.filter((line) => line.includes("updated the endpoint")).length).toBeLessThanOrEqual(1);
  });

  test("is removed by the next agent if the pod has gone meanwhile; one of an ADD is never touched", async () => {
    const added = ENDPOINT.key({ namespace: "shop", name: "node--1-k8s-own-eth0" });
    const record = (name: string, more: object) => ({
      apiVersion: API_VERSION,
      kind: "WorkloadEndpoint",
      metadata: {
        name: `node--1-k8s-${name}-eth0`,
        namespace: "shop",
        annotations: { [`${identity.annotationPrefix}ipAddrsNoIpam`]: '["10.0.0.5"]' },
      },
      spec: { orchestrator: "k8s", node: NODE, pod: name, endpoint: "eth0", ipNetworks: ["10.0.0.5/32"], ...more },
    });
    await site.putRecord(KEY, record("web", {}));
    await site.putRecord(added, record("own", { containerID: "c1" }));
    startAgent();
    await site.until(KEY, (found) => found === undefined);

    expect((await site.record(added))?.spec.containerID).toBe("c1");
  });

  test("is not recorded without an address, and is tried again if the datastore refuses", async () => {
    let isLost = true;
    startAgent({ refuses: () => isLost });
    await site.putObject(POD_KEY, pod({ address: "" }));
    await site.putObject(POD_KEY, pod());
    await pollUntil(() => reports.length > 0, "a report");
    isLost = false;
    await site.until(KEY, (found) => found !== undefined);
    expect(reports[0]).toContain("no datastore");
  });
});
