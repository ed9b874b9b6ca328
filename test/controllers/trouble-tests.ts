/**
 * Two replicas, of which one is paused for longer than its lease, while etcd and the API server restart and etcd's history is
 * compacted; and a datastore that is away for a while.
 *
 * The second replica runs only the namespace controller: a policy that appears while it leads would be written by the other.
 */
import { expect } from "bun:test";
import { CONFIGURATION_KEY } from "../../src/controllers/configuration.ts";
import { identity } from "../../src/identity.ts";
import { NETWORK_POLICY, PROFILE } from "../../src/model/kinds.ts";
import { type Controllers, startControllers } from "../support/controllers.ts";
import { etcdctl, freePorts } from "../support/etcd.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { isStreamedList } from "../support/role-use.ts";
import { type EtcdSite, namesOf, type Place, recordAt } from "./etcd-site.ts";

export const AWAY_SECONDS = proofSize({ everyDay: 1, soak: 60 });
/** It restarts while the leader is paused, too. */
const LOSES_API = proofSize({ everyDay: false, soak: true });
const LINE = /^\d{4}-\d\d-\d\d [\d:.]+ \[(INFO|WARNING)\]\[\d+\] \S+: \S/;

/** `leader` runs all controllers of the disturbed place. */
export async function pauseLeader(site: EtcdSite, leader: Controllers): Promise<void> {
  const { disturbed, server, etcd, objects } = site;
  const metricsPort = await serveMetrics(disturbed);
  await leader.untilLogged("wrote what runs to the status");
  for (const name of ["deleted", "changed", "kept"]) await applyPolicy(site, name, 1);
  await site.untilAlike("the policies");
  const second = startControllers({ ...disturbed.environment, ENABLED_CONTROLLERS: "namespace" });
  leader.signal("SIGSTOP");

  // Its watches break, and neither history has what happens now.
  const [member] = etcd.members;
  member?.signal("SIGKILL");
  await Promise.all([member?.restart(), server.apiServer.restart()]);
  await objects.remove("NetworkPolicy", { namespace: "red", name: "deleted" });
  await applyPolicy(site, "changed", 2);
  await applyPolicy(site, "created", 1);
  await editByUser(site);
  compact(disturbed.endpoint);

  await second.untilLogged("Acquired the lease");
  await objects.apply("Namespace", { metadata: { name: "paused" } });
  await untilProfile(disturbed, "kns.paused");
  const audit = server.startAudit();
  const logged = leader.log().length;
  leader.signal("SIGCONT");
  await pollUntil(() => leader.log().slice(logged).includes("Lost the lease"), "the paused replica to notice");
  // The history since it was paused is gone: it lists again. Then it knows what to do, and does not do it.
  const hasListed = () =>
    audit.requests().some((request) => {
      const { uri, userAgent } = request;
      return isStreamedList(request) && uri.includes("/networkpolicies") && userAgent.startsWith(identity.controllers);
    });
  await pollUntil(hasListed, "the paused replica to list again");
  await pollUntil(async () => (await queueDepth(metricsPort, "policy")) >= 2, "its queue to fill");
  await objects.apply("Namespace", { metadata: { name: "resumed" } });
  await untilProfile(disturbed, "kns.resumed");
  const policies = await namesOf(disturbed.store, "networkpolicies");
  expect(policies.filter((name) => name.startsWith("red/knp."))).not.toContain("red/knp.default.created");
  expect(policies).toContain("red/knp.default.deleted");
  // What it had sent before it was paused is logged when it reads the response, just before it notices.
  const unled = leader.log().slice(leader.log().indexOf("Lost the lease", logged));
  expect(unled).not.toMatch(/(created|updated|deleted) (NetworkPolicy|Profile)/);

  expect(await second.kill("SIGTERM")).toBe(0);
  await pollUntil(() => leader.log().slice(logged).includes("Acquired the lease"), "the first to lead again");
  await site.untilAlike("the first to catch up");
  expect(await namesOf(disturbed.store, "networkpolicies")).toContain("red/own");
  for (const log of [leader.log(), second.log()])
    expect(log.split("\n").filter((line) => line !== "" && !LINE.test(line))).toEqual([]);
}

/** Returns the exit code of a replica that is stopped while its datastore is away. */
export async function loseDatastore(site: EtcdSite, controllers: Controllers): Promise<number> {
  const [member] = site.etcd.members;
  const before = controllers.log().length;
  member?.signal("SIGKILL");
  await applyPolicy(site, "outage", 1);
  await pollUntil(() => controllers.log().slice(before).includes("[WARNING]"), "the controllers to report the outage");
  await Bun.sleep(AWAY_SECONDS * 1_000);
  await member?.restart();
  await site.untilAlike("the controllers to catch up with the datastore");

  if (LOSES_API) {
    await site.server.apiServer.kill();
    await Bun.sleep(AWAY_SECONDS * 1_000);
    await site.server.apiServer.restart();
    await applyPolicy(site, "afterwards", 1);
    await site.untilAlike("the controllers to catch up with the API");
  }

  member?.signal("SIGKILL");
  const code = await controllers.kill("SIGTERM");
  await member?.restart();
  return code;
}

function applyPolicy({ objects }: EtcdSite, name: string, port: number): Promise<void> {
  const spec = { podSelector: {}, policyTypes: ["Ingress"], ingress: [{ ports: [{ port, protocol: "TCP" }] }] };
  return objects.apply("NetworkPolicy", { metadata: { name, namespace: "red" }, spec });
}

/** Of the first replica that runs; the other one cannot listen on the same port. */
async function serveMetrics({ store }: Place): Promise<number> {
  const [port = 0] = await freePorts(1);
  const { spec, ...configuration } = await recordAt(store, CONFIGURATION_KEY);
  const value = JSON.stringify({ ...configuration, spec: { ...spec, prometheusMetricsPort: port } });
  await store.commit([{ kind: "put", key: CONFIGURATION_KEY, value }]);
  const serves = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).ok;
  await pollUntil(serves, "the metrics");
  return port;
}

async function queueDepth(port: number, controller: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const name = `${identity.product}_controllers_queue_depth{controller="${controller}"}`;
  const line = text.split("\n").find((each) => each.startsWith(name));
  return Number(line?.split(" ").at(-1) ?? -1);
}

/** An edit of a copy, a deleted copy, and a policy of their own, in both datastores. */
async function editByUser({ put, calm, disturbed }: EtcdSite): Promise<void> {
  const policy = (name: string) => ({
    ...{ kind: "put" as const, key: NETWORK_POLICY.key({ namespace: "red", name }) },
    value: NETWORK_POLICY.codec.write(NETWORK_POLICY.codec.make({ namespace: "red", name }, { tier: "default" })),
  });
  await put(policy("knp.default.kept"), policy("own"));
  for (const { store } of [calm, disturbed]) {
    const key = PROFILE.key({ name: "kns.red" });
    const revision = (await store.read([{ kind: "key", key }])).answers[0]?.[0]?.revision ?? "";
    await store.commit([{ kind: "delete", key, revision }]);
  }
}

function compact(endpoint: string): void {
  const [status] = JSON.parse(etcdctl(endpoint, ["endpoint", "status", "--write-out=json"]));
  etcdctl(endpoint, ["compact", String(status.Status.header.revision)]);
}

async function untilProfile({ store }: Place, name: string): Promise<void> {
  await pollUntil(async () => (await namesOf(store, "profiles")).includes(name), `profile ${name}`);
}
