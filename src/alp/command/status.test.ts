import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { failed, fakeCluster } from "../../../test/support/fake-cluster.ts";
import { seed } from "../../../test/support/ipam.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../../admin/main/command.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { resourceKey } from "../../model/keys.ts";
import { SIDECAR_ANNOTATION } from "../../model/sidecar-annotation.ts";
import { VERSION } from "../../version.ts";
import { envoyFilterObject } from "../mesh/envoy-filter.ts";

const IMAGE = `registry.example.org/vendor:${VERSION}`;
const LABEL = identity.labelPrefix;

let store = openMemory();
let objects: Record<string, object> = {};
beforeEach(() => {
  store = openMemory();
  objects = {};
});

interface PodPlan {
  readonly owner?: readonly [kind: string, name: string];
  readonly image?: string;
  readonly reported?: string;
  readonly phase?: string;
  readonly isEnding?: true;
  readonly hasProxy?: false;
  readonly labels?: Readonly<Record<string, string>>;
}

function pod(
  name: string,
  { owner, image, reported, phase = "Running", isEnding, hasProxy, labels = {} }: PodPlan,
): void {
  objects[`/api/v1/namespaces/shop/pods/${name}`] = {
    metadata: {
      name,
      namespace: "shop",
      labels,
      ...(reported === undefined ? {} : { annotations: { [SIDECAR_ANNOTATION]: reported } }),
      ...(isEnding === undefined ? {} : { deletionTimestamp: "2026-01-01T00:00:00Z" }),
      ...(owner === undefined ? {} : { ownerReferences: [{ kind: owner[0], name: owner[1], controller: true }] }),
    },
    spec: {
      containers: [
        { name: "app", image: "app:1" },
        ...(hasProxy === undefined ? [{ name: "istio-proxy", image: "proxy:1" }] : []),
        ...(image === undefined ? [] : [{ name: identity.sidecar, image }]),
      ],
    },
    status: { phase },
  };
}

function controlled(group: string, plural: string, name: string, owner: readonly [kind: string, name: string]): void {
  const ownerReferences = [{ kind: owner[0], name: owner[1], controller: true }];
  objects[`/apis/${group}/namespaces/shop/${plural}/${name}`] = {
    metadata: { name, namespace: "shop", ownerReferences },
  };
}

function put(plural: string, kind: string, name: string, value: object, more: object = {}): Promise<void> {
  const metadata = { name, namespace: "shop", ...more };
  const text = JSON.stringify({ apiVersion: API_VERSION, kind, metadata, spec: value });
  return seed(store, { kind: "put", key: resourceKey(plural, { name, namespace: "shop" }), value: text });
}

function endpoint(name: string, labels: Readonly<Record<string, string>>, more: object = {}): Promise<void> {
  const spec = {
    orchestrator: "k8s",
    node: "n",
    pod: name,
    endpoint: "eth0",
    interfaceName: "x1",
    ipNetworks: ["10.0.0.1/32"],
  };
  const all = { ...labels, [`${LABEL}namespace`]: "shop", [`${LABEL}orchestrator`]: "k8s" };
  return put("workloadendpoints", "WorkloadEndpoint", `n-k8s-${name.replaceAll("-", "--")}-eth0`, spec, {
    labels: all,
    ...more,
  });
}

function policy(name: string, selector: string): Promise<void> {
  const ingress = [{ action: "Allow", http: { methods: ["GET"] } }];
  return put("networkpolicies", "NetworkPolicy", name, { selector, types: ["Ingress"], ingress });
}

function filter(namespace: string, more: object = {}): void {
  const { metadata, spec } = envoyFilterObject("v3");
  objects["/apis/networking.istio.io/v1alpha3/envoyfilters/a"] = {
    metadata: { ...metadata, namespace },
    spec: { ...spec, ...more },
  };
}

function status(args: readonly string[] = [], more: AdminSurroundings = {}): Promise<AdminRun> {
  const { client } = fakeCluster({ objects });
  const surroundings = { store, env: { KUBECONFIG: "/kubeconfig" }, openKubeClient: async () => client };
  return runInside(["alp", "status", "-n", "shop", ...args], { ...surroundings, ...more });
}

describe("alp status", () => {
  test("shows workloads with the sidecar, by what controls their pods", async () => {
    controlled("apps/v1", "replicasets", "web-1", ["Deployment", "web"]);
    controlled("apps/v1", "replicasets", "web-2", ["Deployment", "web"]);
    controlled("batch/v1", "jobs", "night-7", ["CronJob", "night"]);
    const well = { image: IMAGE, reported: VERSION };
    pod("web-1-a", { owner: ["ReplicaSet", "web-1"], ...well });
    pod("web-2-a", { owner: ["ReplicaSet", "web-2"], ...well });
    pod("db-0", { owner: ["StatefulSet", "db"], ...well });
    pod("log-x", { owner: ["DaemonSet", "log"], ...well });
    pod("night-7-x", { owner: ["Job", "night-7"], ...well });
    pod("once-x", { owner: ["Job", "once"], ...well });
    pod("own-x", { owner: ["ReplicaSet", "own"], ...well });
    pod("alone", well);
    pod("gone", { ...well, phase: "Succeeded" });
    pod("going", { ...well, isEnding: true });
    pod("other", {});

    expect(await status()).toEqual({
      code: EXIT_OK,
      stderr: "",
      stdout: [
        "WORKLOAD         SIDECAR   PODS   REPORTING   STATE",
        "cronjob/night    v3.29.0   1      1/1         ok",
        "daemonset/log    v3.29.0   1      1/1         ok",
        "deployment/web   v3.29.0   2      2/2         ok",
        "job/once         v3.29.0   1      1/1         ok",
        "pod/alone        v3.29.0   1      1/1         ok",
        "replicaset/own   v3.29.0   1      1/1         ok",
        "statefulset/db   v3.29.0   1      1/1         ok",
        "",
        "Everything is well.",
        "",
      ]
        .join("\n")
        .replaceAll("v3.29.0", VERSION),
    });
  });

  test("warns of another release, and counts the pods of each", async () => {
    pod("db-0", { owner: ["StatefulSet", "db"], image: "registry.example.org/vendor:v1.0.0", reported: "v1.0.0" });
    pod("db-1", { owner: ["StatefulSet", "db"], image: IMAGE, reported: VERSION });

    const { code, stdout } = await status();

    expect(code).toBe(EXIT_OK);
    expect(stdout).toContain(`v1.0.0 (1), ${VERSION} (1)   2      2/2         outdated`);
    expect(stdout).toContain(`warning: shop/statefulset/db: the sidecar in db-0 is v1.0.0, not ${VERSION}`);
    expect(stdout).toContain("kubectl --namespace shop rollout restart statefulset/db");
  });

  test("fails if a sidecar does not report in; one that starts is a warning", async () => {
    pod("silent", { image: IMAGE });
    pod("starting", { image: `${IMAGE}@sha256:00`, phase: "Pending" });

    const { code, stdout } = await status();

    expect(code).toBe(EXIT_FAILED);
    expect(stdout).toContain("failed: shop/pod/silent: the sidecar does not report to the node agent");
    expect(stdout).toContain("warning: shop/pod/starting: starting has not started yet");
    expect(stdout).toContain(`pod/starting   ${VERSION}   1      0/1         starting`);
  });

  test('fails if rules with "http" select a workload without sidecar, and names the policies', async () => {
    await endpoint("web-a", { app: "web" });
    await endpoint("other", { app: "other" });
    await policy("read", "app == 'web'");
    await policy("nobody", "app == 'none'");
    pod("web-a", { owner: ["ReplicaSet", "web"], hasProxy: false });
    pod("other", { hasProxy: false });

    const { code, stdout } = await status(["-o", "wide"]);

    expect(code).toBe(EXIT_FAILED);
    expect(stdout).toMatch(/^replicaset\/web +none +1 +0\/1 +no sidecar +NetworkPolicy shop\/read +none$/m);
    expect(stdout).toContain('no sidecar, but "http" rules of NetworkPolicy shop/read select it');
    expect(stdout).not.toContain("pod/other");
  });

  test.each([
    ["istio-system", EXIT_FAILED],
    ["shop", EXIT_FAILED],
    ["elsewhere", EXIT_OK],
  ])("fails if a proxy without sidecar has the filter: of namespace %s", async (namespace, expected) => {
    filter(namespace);
    pod("in-mesh", {});
    pod("outside", { hasProxy: false });

    const { code, stdout } = await status();

    expect(code).toBe(expected);
    expect(stdout.includes("it denies every request")).toBe(expected === EXIT_FAILED);
    expect(stdout).not.toContain("outside");
  });

  const UNFILTERED = [
    ["there is none", () => {}, EXIT_FAILED],
    ["it is in another namespace", () => filter("elsewhere"), EXIT_FAILED],
    [
      "it selects other workloads",
      () => filter("istio-system", { workloadSelector: { labels: { app: "db" } } }),
      EXIT_FAILED,
    ],
    ["it has lost the part for requests", () => filter("shop", { configPatches: [] }), EXIT_FAILED],
    ["it is there", () => filter("istio-system"), EXIT_OK],
    ["it selects this workload", () => filter("shop", { workloadSelector: { labels: { app: "web" } } }), EXIT_OK],
  ] as const;
  test.each(UNFILTERED)(
    'fails if rules with "http" select a proxy that does not ask its sidecar, by the filter: %s',
    async (_, prepare, expected) => {
      prepare();
      await endpoint("web-a", { app: "web" });
      await endpoint("plain", { app: "web" });
      await policy("read", "app == 'web'");
      pod("web-a", { owner: ["ReplicaSet", "web"], image: IMAGE, reported: VERSION, labels: { app: "web" } });
      pod("plain", { image: IMAGE, reported: VERSION, hasProxy: false });
      pod("unselected", { image: IMAGE, reported: VERSION });

      const { code, stdout } = await status();

      expect(code).toBe(expected);
      expect(stdout).toMatch(expected === EXIT_OK ? /^replicaset\/web .* ok$/m : /^replicaset\/web .* no filter$/m);
      expect(stdout.includes('"http" rules of NetworkPolicy shop/read allow every method and path')).toBe(
        expected === EXIT_FAILED,
      );
      expect(stdout).toMatch(/^pod\/plain .* ok$/m);
      expect(stdout).toMatch(/^pod\/unselected .* ok$/m);
    },
  );

  test("knows what reports in from the endpoints of an etcd datastore too", async () => {
    await endpoint("web-a", {}, { annotations: { [SIDECAR_ANNOTATION]: VERSION } });
    pod("web-a", { image: IMAGE });

    expect((await status()).code).toBe(EXIT_OK);
  });

  test("shows sidecars without the datastore, and fails", async () => {
    pod("web-a", { image: IMAGE, reported: VERSION });

    const { code, stdout } = await status([], { openDatastore: () => Promise.reject(new Error("it is away")) });

    expect(code).toBe(EXIT_FAILED);
    expect(stdout).toContain("pod/web-a");
    expect(stdout).toContain("failed: datastore: the policies are unknown: it is away");
  });

  test("says so if there is none, and of all namespaces", async () => {
    const { client } = fakeCluster({
      respond: ({ path }) => (path.includes("envoyfilters") ? failed(404, "no") : undefined),
    });
    const all = await runInside(["alp", "status", "-A"], {
      store,
      env: { KUBECONFIG: "/k" },
      openKubeClient: async () => client,
    });

    expect((await status()).stdout).toBe(
      `No workload of namespace shop has the sidecar of ${identity.title}, or needs it; -A shows all namespaces.\n`,
    );
    expect(all).toEqual({
      code: EXIT_OK,
      stderr: "",
      stdout: `No workload of the cluster has the sidecar of ${identity.title}, or needs it.\n`,
    });
    expect((await status(["-A"])).code).toBe(EXIT_USAGE);
  });

  test("prints JSON and YAML", async () => {
    pod("web-a", { image: IMAGE, reported: VERSION });

    const [json, yaml] = [await status(["-o", "json"]), await status(["-o", "yaml"])];

    expect(JSON.parse(json.stdout)).toEqual({
      version: VERSION,
      ok: true,
      workloads: [
        {
          ...{ namespace: "shop", workload: "pod/web-a", pods: 1, withSidecar: 1, reporting: 1 },
          ...{ releases: { [VERSION]: 1 }, images: [IMAGE], policies: [], state: "ok", concerned: [] },
        },
      ],
      findings: [],
    });
    expect(Bun.YAML.parse(yaml.stdout)).toEqual(JSON.parse(json.stdout));
  });
});
