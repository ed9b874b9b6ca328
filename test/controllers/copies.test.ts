/** The controllers on a real API server and a real etcd: what they copy, who of two writes, and what they catch up on. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { CONFIGURATION_KEY } from "../../src/controllers/configuration.ts";
import type { Datastore } from "../../src/datastore/datastore.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { type Controllers, startControllers } from "../support/controllers.ts";
import { hasEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { type EtcdSite, namesOf, openEtcdSite, recordAt } from "./etcd-site.ts";
import { KILLS, killUnderChurn } from "./killed-tests.ts";
import { enforceOnPackets } from "./packet-tests.ts";
import { AWAY_SECONDS, loseDatastore, pauseLeader } from "./trouble-tests.ts";

const problem = apiServerProblem() ?? (hasEtcd ? undefined : "needs etcd");
const testServer = testNeeding(problem);
const testPackets = testNeeding(problem ?? hostProblem(), program("nft"));
/** With 100 kills, or a minute without a datastore. */
const LIMIT_MILLISECONDS = 580_000;

let site: EtcdSite;
let store: Datastore;
let calm: Controllers;
let disturbed: Controllers;

beforeAll(async () => {
  if (problem !== undefined) return;
  site = await openEtcdSite();
  store = site.calm.store;
  calm = startControllers(site.calm.environment);
  await site.server.createNamespace("red");
}, 120_000);
afterAll(async () => {
  await calm?.kill();
  await disturbed?.kill();
  await site?.[Symbol.asyncDispose]();
});

const until = (plural: string, name: string, state: "there" | "gone" = "there") =>
  pollUntil(
    async () => (await namesOf(store, plural)).includes(name) === (state === "there"),
    `${plural} ${name} to be ${state}`,
  );

const applyPolicy = (name: string) =>
  site.server.apply(
    JSON.stringify({
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name, namespace: "red" },
      spec: { podSelector: {} },
    }),
  );

describe("the controllers on etcd", () => {
  testServer(
    "copy policies, namespaces and service accounts, and delete the copies",
    async () => {
      await until("profiles", "kns.red");
      await until("profiles", "ksa.red.default");
      await applyPolicy("deny");
      await until("networkpolicies", "red/knp.default.deny");
      await site.server.kubectl(["label", "namespace", "red", "team=a"]);
      const key = resourceKey("profiles", { name: "kns.red" });
      await pollUntil(
        async () => (await recordAt(store, key))?.spec.labelsToApply["pcns.team"] === "a",
        "the label of the profile",
      );
      await site.server.kubectl(["create", "serviceaccount", "robot", "--namespace=red"]);
      await until("profiles", "ksa.red.robot");
      await site.server.kubectl(["delete", "serviceaccount", "robot", "--namespace=red"]);
      await until("profiles", "ksa.red.robot", "gone");
      await site.server.kubectl(["delete", "networkpolicy", "-n", "red", "deny"]);
      await until("networkpolicies", "red/knp.default.deny", "gone");
    },
    60_000,
  );

  testServer(
    "say in the configuration what runs, and follow it without a restart",
    async () => {
      await pollUntil(async () => (await recordAt(store, CONFIGURATION_KEY))?.status !== undefined, "the status");
      const configuration = await recordAt(store, CONFIGURATION_KEY);
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
        async () =>
          Object.keys((await recordAt(store, CONFIGURATION_KEY)).status.runningConfig.controllers).length === 2,
        "the new status",
      );
      await applyPolicy("ignored");
      await site.server.createNamespace("blue");
      await until("profiles", "kns.blue");
      expect(await namesOf(store, "networkpolicies")).not.toContain("red/knp.default.ignored");

      await store.commit([
        { kind: "put", key: CONFIGURATION_KEY, value: JSON.stringify({ ...configuration, spec: {} }) },
      ]);
      await until("networkpolicies", "red/knp.default.ignored");
    },
    60_000,
  );

  testServer(
    `reach the state of an undisturbed run if they are killed ${KILLS} times while the cluster is at work`,
    async () => {
      disturbed = await killUnderChurn(site);
    },
    LIMIT_MILLISECONDS,
  );

  testServer(
    "write nothing without the lease, and catch up when they have it: watches broke, and histories were compacted",
    () => pauseLeader(site, disturbed),
    LIMIT_MILLISECONDS,
  );

  testServer(
    `catch up with a datastore that was away for ${AWAY_SECONDS} s, and can be stopped meanwhile`,
    async () => {
      expect(await loseDatastore(site, disturbed)).toBe(0);
    },
    LIMIT_MILLISECONDS,
  );

  testPackets(
    "make the node agent enforce what kubectl changes, on packets",
    () => enforceOnPackets(site),
    LIMIT_MILLISECONDS,
  );
});
