/** ClusterNetworkPolicies as records, while their definition is absent, appears and goes. */
import { beforeEach, describe, expect, test } from "bun:test";
import { type FakeApi, startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import { ManualClock, settled, timersOn } from "../../../test/support/manual-clock.ts";
import { startedReplicas } from "../../../test/support/started-replicas.ts";
import type { KubeClient } from "../../kube/api.ts";
import { requireOk } from "../../kube/require-ok.ts";
import { CLUSTER_POLICY_STATUSES_PREFIX, clusterPolicyStatusKey } from "../../model/cluster-policy-status.ts";
import { resourceKey, resourcesPrefix } from "../../model/keys.ts";
import { type Replica, startReplica } from "../replica.ts";
import { CLUSTER_POLICIES } from "./cluster-policies.ts";
import type { KindMapping } from "./kind-mapping.ts";
import { orchestratorMapping } from "./orchestrator-mapping.ts";
import { productMapping } from "./product-mapping.ts";
import { openKubeStore } from "./store.ts";

const PREFIX = resourcesPrefix("globalnetworkpolicies");
const OWN = "/apis/vendor.org/v3/globalnetworkpolicies";
const { path: CLUSTER } = CLUSTER_POLICIES;
const NOW = new Date("2026-01-01T00:00:00Z");
const SPEC = { tier: "Admin", priority: 1, subject: { namespaces: {} } };

const started = startedReplicas();
let api: FakeApi;
let clock: ManualClock;
let isDefined: boolean;
let asked: string[];
let problems: string[];
/** Ends the open watches of the collection, as a server does without its definition. */
let endWatches: () => void;

beforeEach(() => {
  api = startFakeApi();
  clock = new ManualClock();
  [isDefined, asked, problems] = [true, [], []];
  endWatches = () => {};
});

/** A server that has the collection only while it is defined. */
function client(): KubeClient {
  const connected = api.connect(async (request, send) => {
    asked.push(request.path);
    return isDefined || !request.path.startsWith(CLUSTER) ? send() : NOT_FOUND;
  });
  return {
    ...connected,
    watch: (path, query, signal) => {
      asked.push(path);
      if (path !== CLUSTER) return connected.watch(path, query, signal);
      if (!isDefined) return refused(path);
      const ending = new AbortController();
      endWatches = () => ending.abort();
      return connected.watch(path, query, AbortSignal.any([signal, ending.signal]));
    },
  };
}

const NOT_FOUND = { status: 404, text: "404 page not found\n" };

// biome-ignore lint/correctness/useYield: it fails before the first event
async function* refused(path: string): ReturnType<KubeClient["watch"]> {
  requireOk(NOT_FOUND, { method: "GET", path, query: { watch: "true" } });
}

function storeWith(mappings: readonly KindMapping[]) {
  const connected = client();
  return openKubeStore({ api: connected, mappings, timers: timersOn(clock), close: () => connected.close() });
}

const product = () => productMapping(() => "mark");

function follow(mappings: readonly KindMapping[], prefix = PREFIX): Replica<{ readonly things: string }> {
  const kinds = { things: { prefix, decode: ({ value }: { readonly value: string }) => value } };
  const { signal } = started.stop;
  const report = ({ message }: Error) => void problems.push(message);
  return started.note(startReplica(storeWith(mappings), kinds, { signal, clock, random: () => 0, report }));
}

function put(name: string, spec: object = SPEC, status: object = {}): void {
  const object = {
    apiVersion: "policy.networking.k8s.io/v1alpha2",
    kind: "ClusterNetworkPolicy",
    metadata: { name },
    ...{ spec, status },
  };
  api.respond({ method: "POST", path: CLUSTER, body: JSON.stringify(object) });
}

function putOwn(name: string): void {
  const object = { apiVersion: "vendor.org/v3", kind: "GlobalNetworkPolicy", metadata: { name }, spec: {} };
  api.respond({ method: "POST", path: OWN, body: JSON.stringify(object) });
}

const namesIn = ({ snapshot }: Replica<{ readonly things: string }>) =>
  snapshot && Array.from(snapshot.things.keys(), (key) => key.slice(key.lastIndexOf("/") + 1)).toSorted();

describe("a policy of the cluster", () => {
  test("is read, listed and never written", async () => {
    put("web");
    putOwn("mine");
    // A custom resource with such a name is not a copy.
    putOwn("kcnp.fake");
    const store = storeWith(product());
    const key = resourceKey("globalnetworkpolicies", { name: "kcnp.web" });

    const { answers } = await store.read([
      { kind: "prefix", prefix: PREFIX },
      { kind: "key", key },
    ]);
    expect(answers.map((found) => found.map((entry) => entry.key.slice(PREFIX.length)))).toEqual([
      ["kcnp.web", "mine"],
      ["kcnp.web"],
    ]);
    expect(JSON.parse(answers[1]?.[0]?.value ?? "")).toMatchObject({ spec: { tier: "kube-admin", order: 1 } });
    const value = answers[1]?.[0]?.value ?? "";
    await expect(store.commit([{ kind: "create", key, value }])).rejects.toThrow(
      "derived from its ClusterNetworkPolicies",
    );
  });
});

describe("without the definition", () => {
  test("other policies are followed, at the cost of less than one request a minute, and nothing is reported", async () => {
    isDefined = false;
    putOwn("mine");
    const replica = follow(product());
    await settled();
    expect(namesIn(replica)).toEqual(["mine"]);
    putOwn("second");
    await settled();
    expect(namesIn(replica)).toEqual(["mine", "second"]);

    for (let second = 0; second < 130; second += 1) await clock.advance(1_000);
    asked = [];
    for (let second = 0; second < 600; second += 1) await clock.advance(1_000);
    expect(asked.filter((path) => path === CLUSTER).length).toBeLessThanOrEqual(11);
    expect(problems).toEqual([]);
  });

  test.each([
    ["those of this product", product],
    ["none, as in the controllers", () => orchestratorMapping(() => NOW)],
  ])("they are followed when it appears, and gone when it goes; beside them: %s", async (_, mappings) => {
    isDefined = false;
    const replica = follow(mappings());
    await settled();
    expect(namesIn(replica)).toEqual([]);

    isDefined = true;
    put("web");
    for (let second = 0; second < 62; second += 1) await clock.advance(1_000);
    expect(namesIn(replica)).toEqual(["kcnp.web"]);
    put("second");
    await settled();
    expect(namesIn(replica)).toEqual(["kcnp.second", "kcnp.web"]);

    isDefined = false;
    endWatches();
    for (let second = 0; second < 10; second += 1) await clock.advance(1_000);
    expect(namesIn(replica)).toEqual([]);
    expect(problems).toEqual([]);
  });
});

test("the status of a policy is the only thing that is written to it", async () => {
  const other = { type: "Ready", status: "True", lastTransitionTime: "2025-01-01T00:00:00Z" };
  put("web", SPEC, { conditions: [other] });
  const store = storeWith(orchestratorMapping(() => NOW));
  const key = clusterPolicyStatusKey("web");
  const [found] = (await store.read([{ kind: "prefix", prefix: CLUSTER_POLICY_STATUSES_PREFIX }])).answers.flat();

  expect(found?.key).toBe(key);
  await store.commit([{ kind: "update", key, value: found?.value ?? "", revision: found?.revision ?? "" }]);
  expect(asked.at(-1)).toBe(`${CLUSTER}/web/status`);
  expect(api.object(`${CLUSTER}/web`)).toMatchObject({
    spec: SPEC,
    status: { conditions: [other, { type: "Accepted", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }] },
  });
});
