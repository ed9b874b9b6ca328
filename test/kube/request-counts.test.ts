/** What calls of the plugin cost the API server, from its audit log, with the orchestrator's API as the datastore. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { API_VERSION, identity } from "../../src/identity.ts";
import { startAgent } from "../agent/agent.ts";
import { hostProblem } from "../support/host.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { type KubePod, type KubeSite, openKubeSite } from "../support/kube-store-site.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";

const problem = hostProblem() ?? apiServerProblem();
const testSite = testNeeding(problem);

let site: KubeSite;
const pods: KubePod[] = [];

beforeAll(async () => {
  if (problem !== undefined) return;
  site = await openKubeSite();
  for (let index = 0; index < 8; index++) pods.push(await site.makePod(`pod-${index}`));
}, 120_000);
afterAll(() => site?.[Symbol.asyncDispose]());

const WRITES = ["create", "update", "patch", "delete"];

interface Counted {
  readonly requests: Readonly<Record<string, number>>;
  readonly total: number;
  readonly writes: number;
}

async function counted(work: () => Promise<unknown>): Promise<Counted> {
  const audit = site.server.startAudit();
  await work();
  const requests = audit.counts(site.user);
  const sum = (of: readonly (readonly [string, number])[]) => of.reduce((total, [, count]) => total + count, 0);
  const all = Object.entries(requests);
  return { requests, total: sum(all), writes: sum(all.filter(([what]) => WRITES.includes(what.split(" ")[0] ?? ""))) };
}

const podNumber = (index: number): KubePod => {
  const pod = pods[index];
  if (pod === undefined) throw new Error("no pod");
  return pod;
};

describe("requests to the API server", () => {
  testSite("of a steady ADD without the node agent: 9, three of them writes", async () => {
    await site.add(podNumber(0));
    const { requests, total, writes } = await counted(() => site.add(podNumber(1)));

    expect({ total, writes }).toEqual({ total: 9, writes: 3 });
    expect(requests).toEqual({
      "get pods": 1,
      "get namespaces": 1,
      "get clusterinformations": 1,
      "list ippools": 1,
      "list ipreservations": 1,
      "get ipamblocks": 1,
      "create ipamhandles": 1,
      "update ipamblocks": 1,
      "patch pods/status": 1,
    });
  });

  testSite("of a DEL without the node agent: 8, three of them writes", async () => {
    const { requests, total, writes } = await counted(() => site.del(podNumber(1)));

    expect({ total, writes }).toEqual({ total: 8, writes: 3 });
    expect(requests).toEqual({
      "get pods": 1,
      "get clusterinformations": 1,
      // Older releases had handles of another form.
      "get ipamhandles": 2,
      "get ipamblocks": 1,
      "update ipamblocks": 1,
      "delete ipamhandles": 1,
      "patch pods/status": 1,
    });
  });

  testSite("of a steady ADD with the node agent: 6, three of them writes; its copies follow changes", async () => {
    await startAgent(site.host);
    await site.add(podNumber(2));
    await pollUntil(async () => {
      const { total } = await counted(async () => {
        await site.del(podNumber(2));
        await site.add(podNumber(2));
      });
      return total <= 14;
    }, "the copies of the agent");
    const { requests, total, writes } = await counted(() => site.add(podNumber(3)));

    expect({ total, writes }).toEqual({ total: 6, writes: 3 });
    expect(requests).toEqual({
      "get pods": 1,
      "get namespaces": 1,
      // Whether the datastore is locked: a copy may be old.
      "get clusterinformations": 1,
      "create ipamhandles": 1,
      "update ipamblocks": 1,
      "patch pods/status": 1,
    });
    await site.admin(["patch", "ippool", "four", "-p", '{"spec":{"disabled":true}}']);
    await pollUntil(async () => (await site.call("ADD", podNumber(4))).code !== 0, "the change of the pool to be seen");
    await site.admin(["patch", "ippool", "four", "-p", '{"spec":{"disabled":false}}']);
    await site.add(podNumber(4));
    expect(await site.admin(["ipam", "check"])).toContain("no problems");
  });

  testSite("a pool that was added while the agent ran is protected by its first block", async () => {
    const from = (pool: string) => site.config({ ipam: { type: identity.ipamType, ipv4_pools: [pool] } });
    const finalizers = () =>
      site.server.kubectl(["get", "ippool", "later", "--output=jsonpath={.metadata.finalizers}"]);
    const later = {
      apiVersion: API_VERSION,
      kind: "IPPool",
      metadata: { name: "later" },
      spec: { cidr: "10.61.0.0/16" },
    };
    await site.admin(["create", "-f", "-"], JSON.stringify(later));
    // Once the agent knows of this change, it knows the pool, too.
    await site.admin(["patch", "ippool", "four", "-p", '{"spec":{"disabled":true}}']);
    const isKnown = async () => (await site.call("ADD", podNumber(6), from("four"))).code !== 0;
    await pollUntil(isKnown, "the change of the pool to be seen");
    expect(await finalizers()).toBe("");
    await site.add(podNumber(6), from("later"));

    expect(await finalizers()).toContain("blocks");
    await site.del(podNumber(6));
    await site.admin(["delete", "ippool", "later"]);
    await site.admin(["patch", "ippool", "four", "-p", '{"spec":{"disabled":false}}']);
  });

  testSite("a pool with blocks cannot be deleted by kubectl; the admin tool deletes it when it is empty", async () => {
    const pool = async () => site.server.kubectl(["get", "ippool", "four", "--ignore-not-found", "--output=name"]);
    await site.server.kubectl(["delete", "ippool", "four", "--wait=false"]);
    expect(await pool()).toContain("four");
    expect((await site.call("ADD", podNumber(5))).code).toBe(1);
    await expect(site.admin(["delete", "ippool", "four"])).rejects.toThrow("in use");
    for (const pod of pods) await site.del(pod);
    await site.admin(["delete", "ippool", "four"]);

    expect(await pool()).toBe("");
    expect(await site.admin(["ipam", "check"])).toContain("no problems");
  });
});
