import { expect, test } from "bun:test";
import { startFakeApi } from "../../test/support/kube-api/fake-api.ts";
import { pollUntil } from "../../test/support/poll.ts";
import { CLUSTER_POLICIES } from "../datastore/kube/cluster-policies.ts";
import { orchestratorMapping } from "../datastore/kube/orchestrator-mapping.ts";
import { openKubeStore } from "../datastore/kube/store.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { SYSTEM_CLOCK } from "../datastore/replica/clock.ts";
import { startReplica } from "../datastore/replica.ts";
import { clusterPolicyStatusController } from "./cluster-policy-status.ts";
import { followedKinds, ORCHESTRATOR_KINDS, STORED_KINDS } from "./facts.ts";
import { RunningController } from "./run-controller.ts";

const { path: PATH } = CLUSTER_POLICIES;
const NOW = () => new Date("2026-01-01T00:00:00Z");

test("each policy of the cluster says whether it is enforced, again after each change, and only once", async () => {
  const api = startFakeApi();
  const client = api.connect();
  const orchestrator = openKubeStore({ api: client, mappings: orchestratorMapping(NOW), close: () => client.close() });
  const stop = new AbortController();
  const common = { signal: stop.signal, clock: SYSTEM_CLOCK, random: Math.random, report: () => {} };
  const followed = followedKinds(ORCHESTRATOR_KINDS, new Set(["clusterPolicyStatuses"] as const));
  const replicas = {
    orchestrator: startReplica(orchestrator, followed, { ...common, watches: "per kind" as const }),
    stored: startReplica(openMemory(), followedKinds(STORED_KINDS, new Set()), common),
  };
  const controller = new RunningController(clusterPolicyStatusController, {
    ...{ store: orchestrator, orchestrator, replicas, periodMilliseconds: 0, signal: stop.signal, now: NOW },
    ...{ leadership: { isLeading: () => true, whenLeading: async () => {} }, log: () => {} },
    ...{ elapsed: () => performance.now(), wait: SYSTEM_CLOCK.wait },
  });
  const running = controller.run();
  const spec = { tier: "Admin", priority: 1, subject: { namespaces: {} } };
  const write = (method: "POST" | "PUT", path: string, object: object) =>
    api.respond({ method, path, body: JSON.stringify({ metadata: { name: "web" }, ...object }) });
  const conditions = () =>
    (api.object(`${PATH}/web`)?.["status"] as { conditions?: readonly object[] })?.conditions ?? [];

  write("POST", PATH, { spec });
  await pollUntil(() => conditions().length > 0, "the first status");
  expect(conditions()).toMatchObject([{ type: "Accepted", status: "True", reason: "Accepted" }]);

  const egress = [{ action: "Deny", to: [{ domainNames: ["a.b"] }] }];
  write("PUT", `${PATH}/web`, { ...api.object(`${PATH}/web`), spec: { ...spec, egress } });
  await pollUntil(() => JSON.stringify(conditions()).includes("NotSupported"), "the next status");
  expect(conditions()).toMatchObject([{ status: "False" }]);
  expect(controller.state.writes).toBe(2);
  stop.abort();
  await running;
});
