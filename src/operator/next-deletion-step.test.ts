import { describe, expect, test } from "bun:test";
import { followedSnapshot, liveObject } from "../../test/support/followed-snapshot.ts";
import { identity } from "../identity.ts";
import type { LiveObject } from "../release/live-object.ts";
import { CLEANED_UP_ANNOTATION } from "../release/operator-names.ts";
import type { DeletionStep } from "./deletion-view.ts";
import type { FollowedRow } from "./followed-objects.ts";
import { nextDeletionStep } from "./next-deletion-step.ts";
import { SKIP_CLEANUP_ANNOTATION } from "./request-deletion.ts";

const namespaces = { operator: "of-operator", components: "system" };
const IN_SYSTEM = { namespace: "system" };
const { nodeAgent, controllers } = identity;
const UNINSTALL = `${nodeAgent}-uninstall`;
const DELETED = { deletionTimestamp: "2026-01-01T00:00:00Z" };

const apps = (kind: string, name: string, members: object = {}) =>
  liveObject(kind, name, {
    apiVersion: "apps/v1",
    spec: { selector: { matchLabels: { "app.kubernetes.io/name": name } } },
    metadata: IN_SYSTEM,
    ...members,
  });
const account = liveObject("ServiceAccount", nodeAgent, { metadata: IN_SYSTEM });
const cleaner = (desired: number) =>
  apps("DaemonSet", UNINSTALL, { status: { observedGeneration: 1, desiredNumberScheduled: desired } });
const pod = (workload: string, node: string, ready: "True" | "False" = "False") =>
  liveObject("Pod", `${workload}-on-${node}`, {
    metadata: { ...IN_SYSTEM, labels: { "app.kubernetes.io/name": workload } },
    spec: { nodeName: node },
    status: { conditions: [{ type: "Ready", status: ready }] },
  });
const ending = (workload: string, node: string) => {
  const { metadata, ...members } = pod(workload, node);
  return { ...members, metadata: { ...metadata, ...DELETED } };
};
const node = (name: string, status = "True", message = "", lastTransitionTime = "2025-12-01T00:00:00Z") =>
  liveObject("Node", name, { status: { conditions: [{ type: "Ready", status, message, lastTransitionTime }] } });
const LOST = node("lost", "Unknown", "Kubelet stopped posting node status.");

type Objects = Partial<Record<FollowedRow, readonly LiveObject[]>>;

interface Moment {
  readonly annotation?: string;
  readonly status?: object;
  /** Since the Installation was deleted. */
  readonly minutes?: number;
}

function step(objects: Objects, { annotation, status = {}, minutes = 1 }: Moment = {}): DeletionStep {
  const annotations = annotation === undefined ? {} : { [annotation]: "true" };
  const installation = liveObject("Installation", "default", { status, metadata: { ...DELETED, annotations } });
  const now = new Date(Date.parse(DELETED.deletionTimestamp) + minutes * 60_000);
  return nextDeletionStep({ snapshot: followedSnapshot(objects), namespaces, installation, now });
}

function deleted(objects: Objects, moment?: Moment): readonly string[] {
  const found = step(objects, moment);
  return found.kind === "delete" ? found.objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`) : [found.kind];
}

const RUNNING = {
  deployments: [apps("Deployment", controllers)],
  daemonsets: [apps("DaemonSet", nodeAgent)],
  serviceaccounts: [account],
  nodes: [node("a")],
};

describe("nextDeletionStep()", () => {
  test("removes the console first, while its pod can still be torn down", () => {
    const { console: name } = identity;
    const console = apps("Deployment", name);
    expect(deleted({ ...RUNNING, deployments: [...RUNNING.deployments, console] })).toEqual([`Deployment ${name}`]);

    const waiting = step({ ...RUNNING, pods: [ending(name, "a")] });
    expect(waiting).toMatchObject({ kind: "wait", message: `waiting for 1 pod of "${name}" to end` });
  });

  test("begins with the controllers, and waits for their pods", () => {
    expect(deleted(RUNNING)).toEqual([`Deployment ${controllers}`]);

    const waiting = step({ ...RUNNING, deployments: [], pods: [ending(controllers, "a")] });
    expect(waiting).toMatchObject({ kind: "wait", message: `waiting for 1 pod of "${controllers}" to end` });
  });

  test("looks by its name for a workload whose pods nobody ends: somebody took the operator's label from it", () => {
    const running = { ...RUNNING, deployments: [], pods: [pod(controllers, "a")] };
    const unfollowed = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: controllers, namespace: "system" },
    };

    expect(step(running)).toMatchObject({ kind: "wait", unfollowed });
    expect(step(running, { minutes: 5 })).toMatchObject({ problem: expect.stringContaining("has not ended") });
  });

  test("goes on with the node agents, and waits for their pods except on nodes that do not respond", () => {
    const agents = { ...RUNNING, deployments: [] };
    expect(deleted(agents)).toEqual([`DaemonSet ${nodeAgent}`]);

    const late = { ...agents, daemonsets: [], pods: [ending(nodeAgent, "a")] };
    expect(step(late).kind).toBe("wait");
    expect(step({ ...late, nodes: [], pods: [ending(nodeAgent, "gone")] }).kind).toBe("clean up nodes");
    expect(step({ ...late, nodes: [LOST], pods: [ending(nodeAgent, "lost")] }).kind).toBe("clean up nodes");
  });

  test("says after five minutes which pods do not end, and can be told not to wait for them", () => {
    const stuck = { ...RUNNING, deployments: [], daemonsets: [], pods: [ending(nodeAgent, "a")] };
    expect(step(stuck, { minutes: 4 })).not.toHaveProperty("problem");

    const found = step(stuck, { minutes: 5 });
    const problem = found.kind === "wait" ? found.problem : "";
    expect(problem).toContain(`Pod "${nodeAgent}-on-a" on node "a" has not ended`);
    expect(problem).toContain(`kubectl delete pod --namespace system --force ${nodeAgent}-on-a`);
    expect(problem).toContain("skip-node-cleanup=true");
    expect(step(stuck, { annotation: SKIP_CLEANUP_ANNOTATION }).kind).toBe("nodes are done");
  });

  test("cleans up every node before anything that this needs is deleted", () => {
    const cleaning = { serviceaccounts: [account], daemonsets: [cleaner(2)], nodes: [node("a"), node("b")] };
    const done = pod(UNINSTALL, "a", "True");

    expect(step({ ...cleaning, pods: [done] })).toMatchObject({ message: "waiting until 1 of 2 nodes are cleaned up" });
    const all = { ...cleaning, pods: [done, pod(UNINSTALL, "b", "True")] };
    expect(step(all)).toEqual({ kind: "nodes are done", unclean: [] });
    expect(deleted(all, { annotation: CLEANED_UP_ANNOTATION })).toEqual([`ServiceAccount ${nodeAgent}`]);
  });

  test("waits five minutes for a node that does not respond, and names it", () => {
    const cleaning = {
      serviceaccounts: [account],
      daemonsets: [cleaner(2)],
      nodes: [node("a"), LOST],
      pods: [pod(UNINSTALL, "a", "True"), pod(UNINSTALL, "lost")],
    };
    const LEFT: DeletionStep = { kind: "nodes are done", unclean: ["lost"] };

    const waiting = step(cleaning, { minutes: 4 });
    expect(waiting).toMatchObject({ kind: "wait", reason: "NodeNotReady" });
    expect(waiting.kind === "wait" && waiting.problem).toContain(
      'Node "lost" is not ready: Kubelet stopped posting node status.; the deletion waits for it until 2026-01-01T00:05:00Z',
    );
    expect(step(cleaning, { minutes: 5 })).toEqual(LEFT);
    expect(step(cleaning, { annotation: SKIP_CLEANUP_ANNOTATION })).toEqual(LEFT);
    expect(step({ ...cleaning, nodes: [node("a")] })).toEqual(LEFT);

    const rebooted = node("lost", "Unknown", "", "2026-01-01T00:04:00Z");
    expect(step({ ...cleaning, nodes: [node("a"), rebooted] }, { minutes: 6 }).kind).toBe("wait");
    expect(step({ ...cleaning, nodes: [node("a"), rebooted] }, { minutes: 9 })).toEqual(LEFT);
  });

  test("says why a node cannot be cleaned up, and how not to wait for it", () => {
    const broken = {
      ...pod(UNINSTALL, "a"),
      status: { containerStatuses: [{ image: "it", state: { waiting: { reason: "ErrImagePull" } } }] },
    };
    const cleaning = { serviceaccounts: [account], daemonsets: [cleaner(1)], nodes: [node("a")], pods: [broken] };
    const found = step(cleaning);

    expect(found.kind === "wait" && found.problem).toContain('image "it" cannot be pulled');
    expect(found.kind === "wait" && found.problem).toContain("skip-node-cleanup=true");
    expect(step(cleaning, { annotation: SKIP_CLEANUP_ANNOTATION })).toEqual({ kind: "nodes are done", unclean: ["a"] });
  });

  test("deletes accounts and roles, then the DaemonSet that shows that the nodes are clean, then the namespace", () => {
    const rest = {
      daemonsets: [cleaner(1)],
      clusterroles: [liveObject("ClusterRole", nodeAgent)],
      namespaces: [liveObject("Namespace", "system")],
    };

    expect(deleted(rest)).toEqual([`ClusterRole ${nodeAgent}`]);
    expect(deleted({ ...rest, clusterroles: [] })).toEqual([`DaemonSet ${UNINSTALL}`]);
    expect(deleted({ namespaces: rest.namespaces })).toEqual(["Namespace system"]);
    expect(deleted({ namespaces: [liveObject("Namespace", "system", { metadata: DELETED })] })).toEqual(["finish"]);
  });

  test("has nothing to clean up if no agent was ever installed", () => {
    expect(deleted({ namespaces: [liveObject("Namespace", "system")], nodes: [node("a")] })).toEqual([
      "Namespace system",
    ]);
  });

  test("names all nodes as not cleaned up if the account was deleted by hand", () => {
    const installed = { computed: {} };
    expect(step({ nodes: [node("a"), node("b")] }, { status: installed })).toEqual({
      kind: "nodes are done",
      unclean: ["a", "b"],
    });
    expect(step({ nodes: [node("a")] }, { status: installed, annotation: CLEANED_UP_ANNOTATION }).kind).toBe("finish");
  });

  test("deletes the list of those who may choose addresses only if it permits nobody", () => {
    const list = (entries: string) =>
      liveObject("ConfigMap", `${identity.product}-address-list`, {
        metadata: { namespace: "kube-system" },
        data: { floatingIPs: `# comment\n${entries}` },
      });
    expect(deleted({ configmaps: [list("\n")] })).toEqual([`ConfigMap ${identity.product}-address-list`]);
    expect(deleted({ configmaps: [list(" team-a\n")] })).toEqual(["finish"]);
  });

  test("leaves objects with its label that it did not apply", () => {
    const copy = liveObject("ClusterRole", "copy", { metadata: { managedFields: [] } });
    expect(deleted({ clusterroles: [copy] })).toEqual(["finish"]);
  });
});
