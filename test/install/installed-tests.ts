/**
 * What must work in every cluster that the product was installed in, however that was done: two nodes are Ready, pods
 * "a" on the first and "b", "c" on the second reach each other as policy allows, and the admin tool finds nothing wrong.
 */
import { expect } from "bun:test";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { FLOWS } from "../../src/release/workloads/names.ts";
import { acrossNodesTests, startPodsOfTwoNodes, type TwoNodes } from "../kube/across-nodes-tests.ts";
import type { BareCluster } from "../support/bare-cluster.ts";
import { fetchFromHost } from "../support/connectivity.ts";
import type { Audit } from "../support/kube-audit.ts";
import type { testNeeding } from "../support/needs.ts";
import { leftoversOf, nodeState } from "../support/node-state.ts";
import { NAMESPACE, type Pods, podsOn } from "../support/pods-in-namespace.ts";
import { pollUntil } from "../support/poll.ts";
import { isForbidden } from "../support/role-use.ts";

export interface InstalledCluster extends BareCluster {
  readonly pods: Pods;
  /** Every request since the cluster was empty. */
  readonly audit: Audit;
  /** Runs the admin tool where kubectl runs too, as the administrator of the cluster. */
  admin(...args: readonly string[]): Promise<string>;
}

const ADMIN_TOOL = join(import.meta.dir, "../../dist/bin", identity.adminTool);
const HOST_PORT = 8081;
const LIMIT_MILLISECONDS = 120_000;

export function installedCluster(cluster: BareCluster): InstalledCluster {
  const environment = { KUBECONFIG: cluster.server.adminKubeconfig };
  return {
    ...cluster,
    pods: podsOn(cluster.server),
    audit: cluster.server.startAudit(),
    admin: (...args) =>
      cluster.host.must([ADMIN_TOOL, ...args], { environment, limitMilliseconds: LIMIT_MILLISECONDS }),
  };
}

/** Waits until both nodes are Ready, and starts the pods of the tests. */
export async function startPods({ server, pods, nodes }: InstalledCluster): Promise<void> {
  await Promise.all(nodes.map((node) => node.untilReady()));
  await server.createNamespace(NAMESPACE);
  await startPodsOfTwoNodes(pods);
}

/** `installed`: the cluster, when the tests run. */
export function installedTests(test: ReturnType<typeof testNeeding>, installed: () => InstalledCluster): void {
  acrossNodesTests(test, () => twoNodesOf(installed()));

  test("a host port leads to its pod", async () => {
    const { pods, host, nodes } = installed();
    await pods.create({ name: "port", hostPort: HOST_PORT, spec: { nodeName: "node-1" } });
    await pods.ready("port");
    for (const address of nodes[0]?.addresses ?? []) {
      expect(await fetchFromHost(host, address, HOST_PORT, "/hostname")).toBe("port");
    }
    await pods.remove("port");
  });
}

/** Fails if something that the product asked the API server for was forbidden. */
export function expectPermitted({ audit }: InstalledCluster): void {
  const ofProduct = new RegExp(`^system:serviceaccount:[^:]+:${identity.product}-`);
  // The roles of an operator that is being deleted are gone before its process, which still renews its Lease.
  const lastLease = `/namespaces/${identity.operator}/leases/`;
  // Agents are told to record flows before the role for it counts; without it no node would have a link.
  const firstLook = `/configmaps/${FLOWS}`;
  const isExpected = ({ uri }: { readonly uri: string }) => uri.includes(lastLease) || uri.endsWith(firstLook);
  const forbidden = audit
    .requests()
    .filter((request) => ofProduct.test(request.user) && isForbidden(request) && !isExpected(request));
  expect(forbidden.map(({ verb, uri, user }) => `${user} ${verb} ${uri}`)).toEqual([]);
}

/** Fails unless the node agent of each node has served calls of the runtime, and their log is where administrators look. */
export async function expectServed({ nodes }: InstalledCluster): Promise<void> {
  for (const { host, name } of nodes) {
    const isServed = async () => {
      const calls = JSON.parse(await host.must(["cat", `/run/${identity.product}/agent/served-calls.json`]));
      return JSON.stringify(calls).includes('"ADD"');
    };
    await pollUntil(isServed, `calls that the node agent of ${name} has served`);
    const log = await host.must(["cat", `/var/log/${identity.product}/cni/cni.log`]);
    expect(log).toMatch(new RegExp(`ADD.*${NAMESPACE}`));
  }
}

/** Fails unless the admin tool finds that everything works. */
export async function expectWell({ admin }: InstalledCluster): Promise<void> {
  await admin("status");
  await admin("connectivity", "test");
}

/** Fails unless, soon, the nodes are as they were before the product was installed, except for what others have left. */
export async function expectNothingLeft({ nodes }: BareCluster, ofOthers?: RegExp): Promise<void> {
  for (const { name, host, before } of nodes) {
    let left: readonly string[] = ["nothing was read"];
    const isClean = async () => {
      left = await nodeState(host).then(
        (after) => leftoversOf(before, after).filter((line) => !ofOthers?.test(line)),
        (failure) => [String(failure)],
      );
      return left.length === 0;
    };
    await pollUntil(isClean, `${name} to be as before`, 20_000).catch(() =>
      expect({ name, left }).toEqual({ name, left: [] }),
    );
  }
}

function twoNodesOf({ server, host, pods, nodes: [first, second] }: InstalledCluster): TwoNodes {
  if (first === undefined || second === undefined) throw new Error("The cluster has less than two nodes");
  return { server, outside: host, first: { node: first }, second: { node: second }, pods };
}
