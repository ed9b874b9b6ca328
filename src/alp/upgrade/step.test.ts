import { describe, expect, test } from "bun:test";
import { formerInjectorConfig } from "../../../test/support/former-injector.ts";
import { injectorConfig } from "../../../test/support/injector-config.ts";
import { StepCluster } from "../../../test/support/step-site.ts";
import { identity } from "../../identity.ts";
import { AGENT_VERSION_ANNOTATION } from "../../model/agent-version-annotation.ts";
import type { StepPlan } from "../../upgrade/engine/step.ts";
import { VERSION } from "../../version.ts";
import { insertSidecar, sidecarImageIn } from "../mesh/insert-sidecar.ts";
import type { MeshMinor } from "../mesh/mesh-minor.ts";
import { hasFormerSidecar } from "./remove-former.ts";
import { sidecarsStep as step } from "./step.ts";

const INJECTOR = "/api/v1/namespaces/istio-system/configmaps/istio-sidecar-injector";
const FORMER_IMAGE = `${identity.product}/dikastes:v3.26.0`;
const OWN = (version: string) => `mirror.example.org/own/vendor:${version}`;

interface MeshPlan {
  readonly config?: string;
  readonly version?: string;
  /** The DaemonSet of the node agents. */
  readonly agents?: string;
}

/** A mesh whose injector gives new pods what its ConfigMap says, a while after that has changed. */
class Mesh extends StepCluster {
  /** What the injector uses. */
  active = "";
  private waits = 0;

  async lay(plan: MeshPlan = {}): Promise<this> {
    const { config = formerInjectorConfig("1.15"), version = "1.15.3", agents = identity.nodeAgent } = plan;
    await this.objects.create("/apis/apps/v1/namespaces/istio-system/deployments", {
      metadata: { name: "istiod", namespace: "istio-system", labels: { app: "istiod" } },
      spec: { template: { spec: { containers: [{ name: "discovery", image: `registry/pilot:${version}` }] } } },
    });
    await this.objects.create("/api/v1/namespaces/istio-system/configmaps", {
      metadata: { name: "istio-sidecar-injector", namespace: "istio-system" },
      data: { config, values: "{}" },
    });
    await this.objects.create("/apis/apps/v1/namespaces/kube-system/daemonsets", {
      metadata: { name: agents, namespace: "kube-system" },
      spec: { template: { spec: { containers: [{ name: identity.nodeAgent, image: OWN(VERSION) }] } } },
    });
    this.active = config;
    this.whileWaiting = () => this.live();
    this.afterWrite = async ({ method, path }) => {
      if (method === "PATCH" && path.startsWith("/apis/apps/")) await this.changed(path);
    };
    this.respond = ({ path, body, contentType }) => {
      if (contentType !== "application/apply-patch+yaml" || !path.includes("/pods/")) return undefined;
      const pod = JSON.parse(body ?? "{}");
      const containers = [...pod.spec.containers, ...this.injected()];
      return { status: 201, text: JSON.stringify({ ...pod, spec: { ...pod.spec, containers } }) };
    };
    return this;
  }

  /** `web`: a Deployment; `db`: a StatefulSet … with pods of the present template. */
  async workload(kind: string, name: string, spec: object = {}, containers = this.injected()): Promise<void> {
    const plural = `${kind.toLowerCase()}s`;
    await this.objects.create(`/apis/apps/v1/namespaces/shop/${plural}`, {
      kind,
      metadata: { name, namespace: "shop", generation: 1 },
      spec: { replicas: 2, template: { metadata: {}, spec: { containers: [{ name: "app", image: "app" }] } }, ...spec },
      status: complete(1),
    });
    await this.pods(kind, name, containers);
  }

  async pod(name: string, owner: object | undefined, containers = this.injected()): Promise<void> {
    await this.objects.create("/api/v1/namespaces/shop/pods", {
      metadata: {
        name,
        namespace: "shop",
        ...(owner === undefined ? {} : { ownerReferences: [{ ...owner, controller: true }] }),
      },
      spec: { containers: [{ name: "app", image: "app" }, ...containers] },
      status: { phase: "Running" },
    });
  }

  get config(): string {
    const { data } = this.api.object(INJECTOR) as unknown as { readonly data: { readonly config: string } };
    return data.config;
  }

  restarts(path: string): number {
    return this.writes.filter((write) => write === `PATCH ${path}`).length;
  }

  sidecars(): readonly string[] {
    return ["web-0", "db-0", "probe-0"].map((name) => {
      // biome-ignore lint/suspicious/noExplicitAny: a pod.
      const pod = this.api.object(`/api/v1/namespaces/shop/pods/${name}`) as any;
      const found = pod?.spec.containers.find((each: { name: string }) =>
        ["dikastes", identity.sidecar].includes(each.name),
      );
      return found?.image;
    });
  }

  private async pods(kind: string, name: string, containers = this.injected()): Promise<void> {
    const owner = kind === "Deployment" ? { kind: "ReplicaSet", name: `${name}-5d4f` } : { kind, name };
    if (
      kind === "Deployment" &&
      this.api.object(`/apis/apps/v1/namespaces/shop/replicasets/${name}-5d4f`) === undefined
    ) {
      await this.objects.create("/apis/apps/v1/namespaces/shop/replicasets", {
        metadata: { name: `${name}-5d4f`, namespace: "shop", ownerReferences: [{ kind, name, controller: true }] },
      });
    }
    for (const index of [0, 1]) await this.pod(`${name}-${index}`, owner, containers);
  }

  private injected() {
    const own = sidecarImageIn(this.active);
    const sidecar = own === undefined ? [] : [{ name: identity.sidecar, image: own }];
    const former = hasFormerSidecar(this.active) ? [{ name: "dikastes", image: FORMER_IMAGE }] : [];
    return [{ name: "istio-proxy", image: "proxy" }, ...former, ...sidecar];
  }

  private async changed(path: string): Promise<void> {
    const generation = Number((this.api.object(path)?.metadata["generation"] as number) ?? 1) + 1;
    await this.objects.patch(path, { metadata: { generation } });
  }

  private async live(): Promise<void> {
    this.waits += 1;
    if (this.waits % 2 === 0) this.active = this.config;
    for (const [kind, plural, name] of [
      ["Deployment", "deployments", "web"],
      ["StatefulSet", "statefulsets", "db"],
      ["DaemonSet", "daemonsets", "probe"],
    ] as const) {
      const path = `/apis/apps/v1/namespaces/shop/${plural}/${name}`;
      // biome-ignore lint/suspicious/noExplicitAny: a workload.
      const object = this.api.object(path) as any;
      if (object === undefined || object.status.observedGeneration === object.metadata.generation) continue;
      for (const index of [0, 1]) await this.objects.remove(`/api/v1/namespaces/shop/pods/${name}-${index}`);
      await this.pods(kind, name);
      await this.objects.patch(path, { status: complete(object.metadata.generation) });
    }
  }
}

const complete = (observedGeneration: number) => ({
  ...{ observedGeneration, replicas: 2, updatedReplicas: 2, availableReplicas: 2, readyReplicas: 2 },
  ...{ desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2 },
});

const PATHS = ["deployments/web", "statefulsets/db", "daemonsets/probe"].map(
  (each) => `/apis/apps/v1/namespaces/shop/${each}`,
);

async function mesh(plan: MeshPlan = {}): Promise<Mesh> {
  const made = await new Mesh().lay(plan);
  await made.workload("Deployment", "web");
  await made.workload("StatefulSet", "db");
  await made.workload("DaemonSet", "probe");
  return made;
}

const FILTERS = "/apis/networking.istio.io/v1alpha3/namespaces/istio-system/envoyfilters";
const SERVICE = "/apis/networking.istio.io/v1alpha3/namespaces/istio-system/serviceentries/dikastes";

/** As `istio-app-layer-policy` of earlier releases has it. */
async function formerFilter(on: StepCluster): Promise<void> {
  const question = { grpc_service: { envoy_grpc: { cluster_name: "outbound|1||dikastes.vendor.cluster.local" } } };
  await on.objects.create(FILTERS, {
    metadata: { name: "ext-authz", namespace: "istio-system" },
    spec: { configPatches: [{ applyTo: "HTTP_FILTER", patch: { operation: "INSERT_BEFORE", value: question } }] },
  });
  await on.objects.create(SERVICE.slice(0, SERVICE.lastIndexOf("/")), {
    metadata: { name: "dikastes", namespace: "istio-system" },
    spec: { endpoints: [{ address: "unix:///var/run/dikastes/dikastes.sock" }] },
  });
}

async function withFilter(): Promise<Mesh> {
  const made = await mesh();
  await formerFilter(made);
  return made;
}

async function planned(on: StepCluster): Promise<StepPlan> {
  const plan = await step.plan(on.site());
  if (plan === undefined) throw new Error("nothing is planned");
  return plan;
}

describe("the step sidecars", () => {
  test.each([identity.nodeAgent, "canal", "canal-node"])(
    "takes the image of the agents of DaemonSet %s",
    async (agents) => {
      const [change] = (await planned(await mesh({ agents }))).changes;

      expect(change?.diff).toMatch(new RegExp(`^\\+ *image: "?${OWN(VERSION)}"?$`, "m"));
    },
  );

  test("changes the template, waits until the mesh uses it, and restarts what has an older sidecar, once", async () => {
    const on = await mesh();
    const plan = await planned(on);
    expect(plan.changes.map(({ action, what }) => `${action} ${what}`)).toEqual([
      "update ConfigMap istio-system/istio-sidecar-injector",
      "restart DaemonSet shop/probe",
      "restart Deployment shop/web",
      "restart StatefulSet shop/db",
    ]);
    expect(plan.changes[0]?.diff).toContain(`-        image: ${FORMER_IMAGE}`);
    expect(plan.notes.join()).toContain(
      "until their pods are restarted, the container dikastes decides about requests",
    );

    await on.run(step, plan);
    expect(on.config).toBe(insertSidecar(injectorBefore(), { minor: "1.15", image: OWN(VERSION) }).config);
    expect(on.sidecars()).toEqual(Array(3).fill(OWN(VERSION)));
    expect(PATHS.map((path) => on.restarts(path))).toEqual([1, 1, 1]);

    on.writes.length = 0;
    await on.run(step, plan);
    expect(on.writes).toEqual([]);
    expect(await step.plan(on.site())).toBeUndefined();
  });

  test("killed at any write it ends the same, with one restart each; so does going back", async () => {
    const plan = await planned(await mesh());
    const before = (await mesh()).config;
    // A backup, the template, three restarts.
    for (let write = 1; write <= 5; write += 1) {
      const on = await mesh();
      expect(await on.killedAt(write, () => on.run(step, plan))).toBe(true);
      await on.run(step, plan);
      expect(on.sidecars()).toEqual(Array(3).fill(OWN(VERSION)));
      expect(PATHS.map((path) => on.restarts(path))).toEqual([1, 1, 1]);

      const rollback = () => step.rollback?.(on.site(), plan) ?? Promise.resolve();
      expect(await on.killedAt(write, rollback)).toBe(write < 5);
      await rollback();
      expect(on.config).toBe(before);
      expect(on.sidecars()).toEqual(Array(3).fill(FORMER_IMAGE));
      expect(PATHS.map((path) => on.restarts(path))).toEqual([2, 2, 2]);
    }
  });

  test("replaces its own sidecar of an earlier release, keeps the registry, and leaves alone what is new", async () => {
    const config = insertSidecar(injectorConfig("1.9"), { minor: "1.9", image: OWN("v3.28.2") }).config;
    const on = await new Mesh().lay({ config, version: "1.9.1" });
    await on.workload("Deployment", "web");
    await on.workload("StatefulSet", "db", {}, [{ name: identity.sidecar, image: OWN(VERSION) }]);
    const plan = await planned(on);

    expect(plan.changes.map(({ what }) => what)).toContain("Deployment shop/web");
    await on.run(step, plan);
    expect(sidecarImageIn(on.config)).toBe(OWN(VERSION));
    expect(PATHS.map((path) => on.restarts(path))).toEqual([1, 0, 0]);
  });

  test("a filter of an earlier release asks new sidecars too, and is replaced when no former one is left", async () => {
    const on = await mesh();
    await formerFilter(on);
    const plan = await planned(on);
    expect(plan.changes.map(({ action, what }) => `${action} ${what}`).slice(4)).toEqual([
      `create EnvoyFilter istio-system/${identity.sidecar}`,
      "delete EnvoyFilter istio-system/ext-authz",
      "delete ServiceEntry istio-system/dikastes",
    ]);
    expect(plan.changes[0]?.diff).toContain("mountPath: /var/run/dikastes");

    await on.run(step, plan);
    expect(on.config).not.toContain("/var/run/dikastes");
    expect(on.api.object(`${FILTERS}/${identity.sidecar}`)).toBeDefined();
    expect([on.api.object(`${FILTERS}/ext-authz`), on.api.object(SERVICE)]).toEqual([undefined, undefined]);
    expect(await step.plan(on.site())).toBeUndefined();

    await step.rollback?.(on.site(), plan);
    expect(on.api.object(`${FILTERS}/${identity.sidecar}`)).toBeUndefined();
    expect(on.api.object(`${FILTERS}/ext-authz`)).toBeDefined();
    expect(on.api.object(SERVICE)).toBeDefined();
  });

  test("killed at any write while filters are replaced, it ends the same", async () => {
    const plan = await planned(await withFilter());
    // A backup, the template, three restarts, our filter, two deletions, the template again.
    for (let write = 1; write <= 9; write += 1) {
      const on = await withFilter();
      expect(await on.killedAt(write, () => on.run(step, plan))).toBe(true);
      await on.run(step, plan);
      expect(on.config).toBe(insertSidecar(injectorBefore(), { minor: "1.15", image: OWN(VERSION) }).config);
      expect(on.api.object(`${FILTERS}/ext-authz`)).toBeUndefined();
      expect(PATHS.map((path) => on.restarts(path))).toEqual([1, 1, 1]);
    }
  });

  test("keeps the filter while a former sidecar stays", async () => {
    const on = await withFilter();
    await on.pod("alone", undefined);
    const plan = await planned(on);

    await on.run(step, plan);
    expect(on.api.object(`${FILTERS}/ext-authz`)).toBeDefined();
    expect(on.config).toContain("mountPath: /var/run/dikastes");
    expect(plan.notes.join()).toContain("stays until the former sidecars are gone");
  });

  test("leaves the filter alone if no injector inserts a sidecar", async () => {
    const on = await new Mesh().lay({ config: injectorConfig("1.15") });
    await formerFilter(on);

    expect(await step.plan(on.site())).toMatchObject({ changes: [] });
  });

  test("reports what no restart renews", async () => {
    const on = await new Mesh().lay();
    await on.workload("DaemonSet", "probe", { updateStrategy: { type: "OnDelete" } });
    await on.workload("StatefulSet", "db", { updateStrategy: { rollingUpdate: { partition: 1 } } });
    const template = { spec: { containers: [{ name: "dikastes", image: FORMER_IMAGE }] } };
    await on.workload("Deployment", "web", { template });
    await on.pod("alone", undefined);
    await on.pod("job-1", { kind: "Job", name: "job" });
    const plan = await planned(on);

    expect(plan.changes.map(({ action }) => action)).toEqual(["update"]);
    expect(plan.notes.slice(0, 5)).toEqual([
      "DaemonSet shop/probe has an older sidecar, and its update strategy is OnDelete: delete probe-0, probe-1",
      "Deployment shop/web has an older sidecar, and its own template has the container dikastes: change it there",
      "Job shop/job has an older sidecar, and nothing restarts job-1: replace it",
      "Pod shop/alone has an older sidecar, and nothing restarts alone: replace it",
      "StatefulSet shop/db has an older sidecar, and its rolling update is partitioned",
    ]);
    await on.run(step, plan);
    expect(on.writes).toHaveLength(2);
  });

  test.each([
    ["1.14.0", "1.10"],
    ["1.16.1", "1.15"],
  ])("a mesh %s, which has no template, gets that of %s", async (version, nearest) => {
    const on = await mesh({ version });
    const { obstacles, notes, changes } = await planned(on);

    expect(obstacles).toEqual([]);
    expect(notes[0]).toEndWith(`mesh ${version} has no template of its own: that of ${nearest} is used`);
    expect(changes.map(({ what }) => what)).toContainEqual(expect.stringContaining("istio-sidecar-injector"));
  });

  test("stops if the injector has not the form of the nearest earlier version", async () => {
    const on = await mesh({ version: "1.8.2" });
    const { obstacles } = await planned(on);

    expect(obstacles.map(({ message }) => message).join()).toContain('it has "templates", as mesh 1.9 and newer have');
    await expect(step.act(on.site(), await planned(on))).rejects.toMatchObject({ kind: "resource-invalid" });
    expect(on.writes).toEqual([]);
  });

  test("stops at a mesh that is older than every template", async () => {
    const on = await mesh({ version: "1.5.10" });
    const { obstacles } = await planned(on);

    expect(obstacles.map(({ message }) => message).join()).toContain('Cannot use mesh version "1.5.10"');
    await expect(step.act(on.site(), await planned(on))).rejects.toMatchObject({ kind: "field-unsupported" });
    expect(on.writes).toEqual([]);
  });

  test("does not begin before all nodes are new", async () => {
    const on = await mesh();
    await on.objects.create("/api/v1/nodes", {
      metadata: { name: "n1", annotations: { [AGENT_VERSION_ANNOTATION]: "v3.28.2" } },
    });

    await expect(on.run(step, await planned(on))).rejects.toThrow(/node agent of n1/);
    expect(on.writes).toEqual([]);
  });

  test("does not restart anything if the injector keeps giving the former sidecar", async () => {
    const on = await mesh();
    on.whileWaiting = async () => {};

    await expect(on.run(step, await planned(on))).rejects.toMatchObject({ kind: "try-again-later" });
    expect(PATHS.map((path) => on.restarts(path))).toEqual([0, 0, 0]);
  });

  test("explains a rolling update without progress, and goes on later without a second restart", async () => {
    const on = await mesh();
    const plan = await planned(on);
    const live = on.whileWaiting;
    on.whileWaiting = async () => {
      on.active = on.config;
    };
    await expect(on.run(step, plan)).rejects.toThrow(/its change has not been processed yet/);

    on.whileWaiting = live;
    await on.run(step, plan);
    expect(PATHS.map((path) => on.restarts(path))).toEqual([1, 1, 1]);
  });

  test("is not needed without application layer policy", async () => {
    const on = await mesh();
    on.facts = { ...on.facts, hasApplicationLayerPolicy: false };

    expect(await step.plan(on.site())).toBeUndefined();
  });
});

/** As it would be if the former sidecar had never been there, besides a blank line. */
function injectorBefore(minor: MeshMinor = "1.15"): string {
  return formerInjectorConfig(minor)
    .replace(/^ *- name: dikastes\n(?: {8,}.*\n)*/m, "")
    .replace(/^ *- mountPath: \/var\/run\/dikastes\n *name: dikastes-sock\n/m, "")
    .replace(/^ *- name: dikastes-sock\n(?: {8,}.*\n)*/m, "")
    .replace(/^ *- name: felix-sync\n(?: {8,}.*\n)*/m, "");
}
