import { describe, expect, test } from "bun:test";
import { followedSnapshot, liveObject } from "../../test/support/followed-snapshot.ts";
import { identity } from "../identity.ts";
import type { LiveObject } from "../release/live-object.ts";
import { CONSOLE } from "../release/workloads/names.ts";
import { AVAILABLE } from "./conditions.ts";
import { removalOrder, unfinishedRollout, withLeftovers } from "./removal-order.ts";

const NAMESPACES = { operator: "of-operator", components: "system" };

interface Counts {
  readonly desired?: number;
  readonly updated?: number;
  readonly available?: number;
  readonly generation?: number;
}

const labelsOf = (name: string) => ({ "app.kubernetes.io/name": name });
const placed = (name: string, generation = 1) => ({ namespace: "system", name, generation });
const selecting = (name: string) => ({ selector: { matchLabels: labelsOf(name) } });

function agents({ desired = 2, updated = 2, generation = 1 }: Counts = {}): LiveObject {
  const name = identity.nodeAgent;
  const status = { observedGeneration: 1, desiredNumberScheduled: desired, updatedNumberScheduled: updated };
  return liveObject("DaemonSet", name, { metadata: placed(name, generation), spec: selecting(name), status });
}

function deployment(
  name: string,
  { desired = 2, updated = 2, available = 2, generation = 1 }: Counts = {},
): LiveObject {
  const status = { observedGeneration: 1, updatedReplicas: updated, availableReplicas: available };
  const spec = { ...selecting(name), replicas: desired };
  return liveObject("Deployment", name, { metadata: placed(name, generation), spec, status });
}

function pod(of: string, name: string, more: { readonly phase?: string; readonly nodeName?: string } = {}): LiveObject {
  const { phase = "Running", nodeName = "node-1" } = more;
  const metadata = { namespace: "system", labels: labelsOf(of) };
  return liveObject("Pod", name, { metadata, spec: { nodeName }, status: { phase } });
}

const node = (status: string) =>
  liveObject("Node", "node-1", { status: { conditions: [{ type: "Ready", status, message: "gone" }] } });

interface Situation {
  readonly agents?: LiveObject;
  readonly controllers?: LiveObject;
  readonly console?: LiveObject;
  readonly pods?: readonly LiveObject[];
  readonly node?: LiveObject;
  readonly rendered?: readonly LiveObject[];
}

function rolloutOf(situation: Situation): string | undefined {
  const { agents: daemonSet = agents(), controllers = deployment(identity.controllers) } = situation;
  const deployments = [controllers, ...(situation.console === undefined ? [] : [situation.console])];
  const snapshot = followedSnapshot({
    daemonsets: [daemonSet],
    deployments,
    pods: situation.pods ?? [],
    nodes: [situation.node ?? node("True")],
  });
  const rendered = situation.rendered ?? [daemonSet, controllers];
  return unfinishedRollout({ snapshot, namespaces: NAMESPACES, rendered, latest: (object) => object });
}

describe("unfinishedRollout()", () => {
  const ofControllers = [1, 2].map((number) => pod(identity.controllers, `controllers-${number}`));

  test("is over when all pods are of the present version, ready or not", () => {
    expect(rolloutOf({ pods: ofControllers })).toBeUndefined();
    expect(rolloutOf({ controllers: deployment(identity.controllers, { available: 0 }) })).toBeUndefined();
    expect(rolloutOf({ agents: agents({ desired: 0, updated: 0 }) })).toBeUndefined();
  });

  const onlyAgents = [agents()];
  const changed = agents({ generation: 2 });
  test.each<[string, Situation, string]>([
    ["a change is not seen yet", { agents: changed }, "has not taken note of it"],
    ["agents are replaced", { agents: agents({ updated: 1 }) }, "1 of 2 pods are of the present version"],
    [
      "controllers are replaced",
      { controllers: deployment(identity.controllers, { updated: 1 }) },
      "1 of 2 pods are of the present version",
    ],
    [
      "former controllers have not ended",
      { pods: [...ofControllers, pod(identity.controllers, "former")] },
      `1 former pod of system/${identity.controllers}`,
    ],
    ["the console is switched off", { console: deployment(CONSOLE), pods: [pod(CONSOLE, "page")] }, CONSOLE],
    ["only pods of the console are left", { pods: [pod(CONSOLE, "page")] }, `1 former pod of system/${CONSOLE}`],
    [
      "the console has just been applied",
      { rendered: [...onlyAgents, deployment(identity.controllers), deployment(CONSOLE)] },
      "does not exist yet",
    ],
  ])("goes on while %s", (_, situation, message) => {
    expect(rolloutOf(situation)).toContain(message);
  });

  test("does not wait for pods that have ended, or whose node does not respond", () => {
    const former = (more: object) => ({ pods: [...ofControllers, pod(identity.controllers, "former", more)] });
    expect(rolloutOf(former({ phase: "Failed" }))).toBeUndefined();
    expect(rolloutOf(former({ nodeName: "removed" }))).toBeUndefined();
    expect(rolloutOf({ pods: [pod(CONSOLE, "page")], node: node("Unknown") })).toBeUndefined();
  });
});

describe("removalOrder()", () => {
  const objects = ["Role", "APIService", "RoleBinding", "Deployment", "Secret", "Service"].map((kind) =>
    liveObject(kind, kind.toLowerCase()),
  );
  const kinds = (list: readonly LiveObject[]) => list.map(({ kind }) => kind);

  test("keeps what pods use until the rollout is over", () => {
    const { now, later } = removalOrder(objects, "controllers are replaced");
    expect(kinds(now)).toEqual(["APIService", "Deployment"]);
    expect(kinds(later)).toEqual(["Role", "RoleBinding", "Secret", "Service"]);
  });

  test("then removes everything", () => {
    expect(removalOrder(objects, undefined)).toEqual({ now: objects, later: [] });
  });
});

describe("withLeftovers()", () => {
  const role = liveObject("Role", "former", { metadata: { namespace: "system" } });

  test("names what stays, and why; everything is available all the same", () => {
    const state = withLeftovers(AVAILABLE, [role], "1 of 2 pods");
    expect(state.available).toEqual(AVAILABLE.available);
    expect(state.progressing).toMatchObject({ status: "True", reason: "ResourceNotReady" });
    expect(state.progressing.message).toMatch(/Role system\/former \(1 of 2 pods\)$/);
  });

  test("says nothing if nothing stays", () => {
    expect(withLeftovers(AVAILABLE, [], "1 of 2 pods")).toBe(AVAILABLE);
    expect(withLeftovers(AVAILABLE, [role], undefined)).toBe(AVAILABLE);
  });
});
