/** The controllers on a real API server and a real etcd: what they copy, who of two writes, and what they catch up on. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { CONFIGURATION_KEY } from "../../src/controllers/configuration.ts";
import type { Datastore } from "../../src/datastore/datastore.ts";
import { openDatastore } from "../../src/datastore/open.ts";
import { resourceKey, resourcesPrefix } from "../../src/model/keys.ts";
import { type Controllers, startControllers } from "../support/controllers.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);

let server: ApiServer;
let store: Datastore;
let first: Controllers;
let second: Controllers | undefined;
let environment: Readonly<Record<string, string>>;

beforeAll(async () => {
  if (problem !== undefined) return;
  server = await startApiServer();
  store = await openDatastore({ kind: "etcd", source: { kind: "endpoints", endpoints: [server.etcdEndpoint] } });
  environment = {
    KUBECONFIG: server.adminKubeconfig,
    DATASTORE_TYPE: "etcdv3",
    ETCD_ENDPOINTS: server.etcdEndpoint,
  };
  first = startControllers(environment);
  await server.createNamespace("red");
}, 120_000);
afterAll(async () => {
  await first?.kill();
  await second?.kill();
  await store?.close();
  await server?.stop();
});

async function namesOf(plural: string): Promise<readonly string[]> {
  const prefix = resourcesPrefix(plural);
  const { answers } = await store.read([{ kind: "prefix", prefix }]);
  return (answers[0] ?? []).map(({ key }) => key.slice(prefix.length));
}

const until = (plural: string, name: string, state: "there" | "gone" = "there") =>
  pollUntil(
    async () => (await namesOf(plural)).includes(name) === (state === "there"),
    `${plural} ${name} to be ${state}`,
  );

const applyPolicy = (name: string) =>
  server.apply(
    JSON.stringify({
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name, namespace: "red" },
      spec: { podSelector: {} },
    }),
  );

// biome-ignore lint/suspicious/noExplicitAny: a record has the fields that its test expects.
async function record(key: string): Promise<any> {
  const text = (await store.read([{ kind: "key", key }])).answers[0]?.[0]?.value;
  return text === undefined ? undefined : JSON.parse(text);
}

describe("the controllers on etcd", () => {
  testServer(
    "copy policies, namespaces and service accounts, and delete the copies",
    async () => {
      await until("profiles", "kns.red");
      await until("profiles", "ksa.red.default");
      await applyPolicy("deny");
      await until("networkpolicies", "red/knp.default.deny");
      await server.kubectl(["label", "namespace", "red", "team=a"]);
      const key = resourceKey("profiles", { name: "kns.red" });
      await pollUntil(
        async () => (await record(key))?.spec.labelsToApply["pcns.team"] === "a",
        "the label of the profile",
      );
      await server.kubectl(["delete", "networkpolicy", "-n", "red", "deny"]);
      await until("networkpolicies", "red/knp.default.deny", "gone");
    },
    60_000,
  );

  testServer(
    "say in the configuration what runs, and follow it without a restart",
    async () => {
      await pollUntil(async () => (await record(CONFIGURATION_KEY))?.status !== undefined, "the status");
      const configuration = await record(CONFIGURATION_KEY);
      expect(Object.keys(configuration.status.runningConfig.controllers)).toEqual([
        "policy",
        "namespace",
        "serviceAccount",
        "workloadEndpoint",
        "node",
      ]);
      const only = { ...configuration, spec: { controllers: { namespace: {}, serviceAccount: {} } } };
      await store.commit([{ kind: "put", key: CONFIGURATION_KEY, value: JSON.stringify(only) }]);
      await pollUntil(
        async () => Object.keys((await record(CONFIGURATION_KEY)).status.runningConfig.controllers).length === 2,
        "the new status",
      );
      await applyPolicy("ignored");
      await server.createNamespace("blue");
      await until("profiles", "kns.blue");
      expect(await namesOf("networkpolicies")).not.toContain("red/knp.default.ignored");

      await store.commit([
        { kind: "put", key: CONFIGURATION_KEY, value: JSON.stringify({ ...configuration, spec: {} }) },
      ]);
      await until("networkpolicies", "red/knp.default.ignored");
    },
    60_000,
  );

  testServer(
    "are taken over by a second process when the first stops, and when it is killed",
    async () => {
      second = startControllers(environment);
      await Bun.sleep(2_000);
      expect(second.log()).not.toContain("Acquired the lease");
      await first.kill("SIGTERM");
      await second.untilLogged("Acquired the lease");
      await applyPolicy("second");
      await until("networkpolicies", "red/knp.default.second");

      first = startControllers(environment);
      await second.kill("SIGKILL");
      await first.untilLogged("Acquired the lease");
      await server.kubectl(["delete", "networkpolicy", "-n", "red", "second"]);
      await until("networkpolicies", "red/knp.default.second", "gone");
    },
    120_000,
  );

  testServer(
    "catch up after the API server was away",
    async () => {
      await server.apiServer.kill();
      await Bun.sleep(1_000);
      await server.apiServer.restart();
      await applyPolicy("later");

      await until("networkpolicies", "red/knp.default.later");
    },
    120_000,
  );
});
