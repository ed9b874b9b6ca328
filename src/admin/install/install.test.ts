import { describe, expect, test } from "bun:test";
import { type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { type FakePlan, failed, fakeCluster, type Stored } from "../../../test/support/fake-cluster.ts";
import { PluginError } from "../../errors.ts";
import { API_VERSION, apiVersionOf, identity, OPERATOR_API } from "../../identity.ts";
import type { KubeRequest } from "../../kube/api.ts";
import { VERSION } from "../../version.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../main/command.ts";

const { operator, product, systemNamespace, nodeAgent, title } = identity;
const GROUP = `/apis/${apiVersionOf(OPERATOR_API)}`;
const INSTALLATION = `${GROUP}/installations/default`;
const OPERATOR = `/apis/apps/v1/namespaces/${operator}/deployments/${operator}`;
const NETWORK = `${product}Network`;

/** A cluster that serves definitions at once, and in which what is not changed keeps its version. */
function clusterOf(objects: Readonly<Record<string, object>> = {}, plan: FakePlan = {}) {
  const cluster = fakeCluster({
    ...plan,
    objects,
    onCreate(path, object: Stored) {
      object.metadata.resourceVersion = "1";
      if (object.kind === "CustomResourceDefinition")
        object.status = { conditions: [{ type: "Established", status: "True" }] };
      plan.onCreate?.(path, object);
    },
  });
  const ctl = (words: string, more: AdminSurroundings = {}) =>
    runInside(words.split(" "), {
      env: { KUBECONFIG: "/config" },
      openKubeClient: async () => cluster.client,
      ...more,
    });
  return { ...cluster, ctl };
}

function daemonSet(namespace: string, name: string) {
  return { [`/apis/apps/v1/daemonsets/${name}`]: { metadata: { namespace, name } } };
}

function conditions(type: string, message = "", observedGeneration = 1) {
  return { conditions: [{ type, status: "True", reason: type, message, observedGeneration }] };
}

async function printed(...args: readonly string[]): Promise<readonly Stored[]> {
  const { stdout, stderr, code } = await runInside(["install", "--dry-run", "-o", "json", ...args]);
  if (code !== EXIT_OK) throw new Error(stderr);
  return JSON.parse(stdout).items;
}

describe("install --dry-run", () => {
  test("prints definitions, operator and Installation in the order of application, without a cluster", async () => {
    const items = await printed();
    const kinds = items.map(({ kind }) => kind);

    expect(kinds[0]).toBe("CustomResourceDefinition");
    expect(kinds.at(-1)).toBe("Installation");
    expect(kinds.indexOf("Deployment")).toBeGreaterThan(kinds.lastIndexOf("CustomResourceDefinition"));
    expect(items.at(-1)).toEqual({
      apiVersion: apiVersionOf(OPERATOR_API),
      kind: "Installation",
      metadata: { name: "default" },
      spec: {},
    });
  });

  test("says beside the objects for which API servers the definitions are", async () => {
    const { stdout, stderr } = await runInside(["install", "-o", "json"]);

    expect(JSON.parse(stdout).items.length).toBeGreaterThan(10);
    expect(stderr).toMatch(/^Note: .* v1\.32 or later; .* older\/operator-crds\.yaml .*\n$/);
  });

  test("prints YAML documents by default", async () => {
    const { stdout } = await runInside(["install", "--dry-run=client"]);

    expect(stdout).toStartWith("---\napiVersion: apiextensions.k8s.io/v1\n");
    expect(stdout).toContain(`image: "${identity.imageRegistry}${product}:${VERSION}"`.replaceAll('"', ""));
  });

  test("options become an Installation, and the operator uses the same image", async () => {
    const items = await printed(
      "--pod-cidr=10.244.0.0/16",
      "--pod-cidr=fd00:244::/56",
      "--encapsulation=VXLAN",
      "--mtu=1400",
      "--bgp=Disabled",
      "--host-ports=Disabled",
      "--registry=registry.example.org/",
      "--image-path=mirror",
      "--image-pull-secret=key",
      "--etcd-endpoints=https://10.0.0.1:2379,https://10.0.0.2:2379",
      "--etcd-secret=etcd",
    );

    expect(items.at(-1).spec).toEqual({
      registry: "registry.example.org/",
      imagePath: "mirror",
      imagePullSecrets: [{ name: "key" }],
      datastore: {
        type: "Etcd",
        etcd: { endpoints: ["https://10.0.0.1:2379", "https://10.0.0.2:2379"], secretName: "etcd" },
      },
      [NETWORK]: {
        bgp: "Disabled",
        hostPorts: "Disabled",
        mtu: 1400,
        ipPools: [
          { cidr: "10.244.0.0/16", encapsulation: "VXLAN" },
          { cidr: "fd00:244::/56", encapsulation: "VXLAN" },
        ],
      },
    });
    const { template } = items.find(({ kind }) => kind === "Deployment").spec;
    expect(template.spec.containers[0].image).toBe(`registry.example.org/mirror/${product}:${VERSION}`);
    expect(template.spec.imagePullSecrets).toEqual([{ name: "key" }]);
  });

  test("host-local is an IPAM type", async () => {
    expect((await printed("--ipam=HostLocal")).at(-1).spec.cni).toEqual({ type: title, ipam: { type: "HostLocal" } });
  });

  test("a file may have the overlay too", async () => {
    const of = (name: string) => `kind: Installation\nmetadata:\n  name: ${name}\nspec: {}\n`;
    const files = { "/both.yaml": `${of("overlay")}---\n${of("default")}` };
    const { stdout } = await runInside(["install", "--dry-run", "-o", "json", "-f", "/both.yaml"], { files });

    expect(
      JSON.parse(stdout)
        .items.slice(-2)
        .map(({ metadata }: Stored) => metadata.name),
    ).toEqual(["default", "overlay"]);
  });

  test.each<[string, string, string]>([
    ["an unknown field", `kind: Installation\nmetadata: {name: default}\nspec: {regsitry: x}`, "registry"],
    ["another kind", "kind: IPPool\nmetadata: {name: default}", "it is not an Installation"],
    ["another name", "kind: Installation\nmetadata: {name: mine}", "metadata.name"],
    ["the overlay alone", "kind: Installation\nmetadata: {name: overlay}", 'there is no Installation "default"'],
    ["text that is not YAML", "a: [", "/file.yaml"],
  ])("refuses a file with %s", async (_, text, message) => {
    const { code, stderr } = await runInside(["install", "--dry-run", "-f", "/file.yaml"], {
      files: { "/file.yaml": text },
    });

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain(message);
  });

  test.each([
    ["--pod-cidr=10.244.0.1/16", EXIT_FAILED, "host bits"],
    ["--encapsulation=VXLAN", EXIT_USAGE, "--pod-cidr"],
    ["--datastore=Etcd", EXIT_USAGE, "--etcd-endpoints"],
    ["--etcd-secret=x", EXIT_USAGE, "--etcd-endpoints"],
    ["--mtu=large", EXIT_USAGE, "--mtu"],
    ["--timeout=soon", EXIT_USAGE, "is not a duration"],
  ])("refuses %s", async (option, exitCode, message) => {
    const { code, stderr } = await runInside(["install", "--dry-run", option]);

    expect({ code, stderr }).toEqual({ code: exitCode, stderr: expect.stringContaining(message) });
  });

  test("refuses a file together with options that describe the network", async () => {
    const { code, stderr } = await runInside(["install", "-f", "/x.yaml", "--mtu=1400"]);

    expect(code).toBe(EXIT_USAGE);
    expect(stderr).toContain('"-f" and "--mtu" cannot be combined');
  });
});

describe("install", () => {
  test("applies everything, and a second time changes nothing", async () => {
    const { ctl, objects } = clusterOf();

    const first = await ctl("install --mtu=1400");
    expect(first.code).toBe(EXIT_OK);
    expect(first.stdout).toContain(`Deployment ${operator}/${operator} created\n`);
    expect(first.stdout).toEndWith("Installation default created\n");
    const again = await ctl("install");
    expect(again.stdout.split("\n").filter((line) => line !== "" && !line.endsWith(" unchanged"))).toEqual([]);
    expect(objects.get(INSTALLATION).spec).toEqual({ [NETWORK]: { mtu: 1400 } });
  });

  test("options change only what they name in the Installation that exists, and the operator keeps its registry", async () => {
    const spec = { registry: "mine.example/", [NETWORK]: { bgp: "Disabled" } };
    const { ctl, objects, requests } = clusterOf(
      { [INSTALLATION]: { metadata: { name: "default", resourceVersion: "7" }, spec } },
      {
        respond: ({ method, path, body = "" }) =>
          method === "PATCH" && path === INSTALLATION ? { status: 200, text: body } : undefined,
      },
    );
    await ctl("install --mtu=1400");

    expect(requests).toContain(`PATCH ${INSTALLATION}`);
    expect(objects.get(OPERATOR).spec.template.spec.containers[0].image).toBe(`mine.example/${product}:${VERSION}`);
  });

  describe("with a list of pools that the Installation does not declare", () => {
    const pool = {
      apiVersion: API_VERSION,
      kind: "IPPool",
      metadata: { name: "blue", resourceVersion: "1" },
      spec: { cidr: "10.9.0.0/16" },
    };
    const pools = { [`/apis/${API_VERSION}/ippools/blue`]: pool };
    const network = { ipPools: [], ipv4Pools: ["blue"] };
    const etcd = { type: "Etcd", etcd: { endpoints: ["http://10.0.0.1:2379"] } };
    const installed = (spec: object) => ({
      [INSTALLATION]: { metadata: { name: "default", resourceVersion: "7" }, spec },
    });
    const file = {
      "/file.yaml": JSON.stringify({
        kind: "Installation",
        metadata: { name: "default" },
        spec: { [NETWORK]: network },
      }),
    };

    test("accepts a pool that exists, from a file and for an upgrade", async () => {
      expect(await clusterOf(pools).ctl("install -f /file.yaml", { files: file })).toMatchObject({ code: EXIT_OK });
      const upgraded = clusterOf({ ...pools, ...installed({ [NETWORK]: network }) });
      expect(await upgraded.ctl("install")).toMatchObject({ code: EXIT_OK, stderr: "" });
    });

    test("refuses a pool that does not exist", async () => {
      const { code, stderr } = await clusterOf().ctl("install -f /file.yaml", { files: file });

      expect({ code, stderr }).toEqual({ code: EXIT_FAILED, stderr: expect.stringContaining("ipv4Pools[0]") });
    });

    test("leaves the check to the operator if the pools are in etcd or no cluster is asked", async () => {
      const upgraded = clusterOf(installed({ datastore: etcd, [NETWORK]: network }));
      expect(await upgraded.ctl("install")).toMatchObject({ code: EXIT_OK, stderr: "" });
      const printed = await runInside(["install", "--dry-run", "-f", "/file.yaml"], { files: file });
      expect(printed.code).toBe(EXIT_OK);
      expect(printed.stderr).not.toContain("ipv4Pools");
    });
  });

  test.each([
    [
      daemonSet("kube-system", "calico-node"),
      "Calico is the network of this cluster (DaemonSet kube-system/calico-node)",
    ],
    [daemonSet("kube-flannel", "kube-flannel-ds"), "Flannel is the network of this cluster"],
    [
      daemonSet("kube-system", nodeAgent),
      `${title} is installed by a manifest already (DaemonSet kube-system/${nodeAgent})`,
    ],
  ])("refuses a cluster with another network, and applies nothing", async (objects, message) => {
    const { ctl, requests } = clusterOf(objects);
    const { code, stderr } = await ctl("install");

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain(message);
    expect(requests.filter((request) => !request.startsWith("GET"))).toEqual([]);
  });

  test("its own DaemonSet is not an obstacle", async () => {
    const { ctl } = clusterOf(daemonSet(systemNamespace, nodeAgent));

    expect((await ctl("install")).code).toBe(EXIT_OK);
  });

  test("refuses if a Secret that it needs does not exist", async () => {
    const { ctl } = clusterOf();
    const { code, stderr } = await ctl("install --image-pull-secret=key");

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain(`there is no Secret "key" in namespace "${operator}"`);
    const there = clusterOf({ [`/api/v1/namespaces/${operator}/secrets/key`]: {} });
    expect((await there.ctl("install --image-pull-secret=key")).code).toBe(EXIT_OK);
  });

  test("reports a definition that the API does not serve", async () => {
    const { ctl } = clusterOf(
      {},
      {
        onCreate: (path, object) => path.endsWith(`/ippools.${identity.apiGroup}`) && delete object.status,
      },
    );

    expect((await ctl("install")).stderr).toContain(`the API does not serve ippools.${identity.apiGroup}`);
  });

  test("--wait prints each change of a component, and ends when the Installation is ready", async () => {
    let reads = 0;
    const states = [
      {},
      conditions("Progressing", "2 nodes left"),
      conditions("Progressing", "2 nodes left"),
      conditions("Ready"),
    ];
    const respond = ({ method, path }: KubeRequest) => {
      if (method !== "GET" || path !== INSTALLATION || reads === 0) return undefined;
      const status = states[Math.min(reads++ - 1, states.length - 1)];
      return {
        status: 200,
        text: JSON.stringify({ metadata: { name: "default", generation: 1, resourceVersion: "1" }, status }),
      };
    };
    const onCreate = (path: string) => {
      if (path === INSTALLATION) reads = 1;
    };
    const statuses = {
      [`${GROUP}/${product}statuses/node`]: { metadata: { name: "node" }, status: conditions("Available") },
    };
    const { ctl } = clusterOf(statuses, { respond, onCreate });
    const { code, stdout } = await ctl("install --wait");

    expect(code).toBe(EXIT_OK);
    const lines = stdout.trimEnd().split("\n");
    expect(lines.slice(lines.indexOf("Installation default created") + 1)).toEqual([
      "node: Available",
      "Installation: waiting for the operator",
      "Installation: Progressing: 2 nodes left",
      "Installation: Ready",
      expect.stringContaining("connectivity test"),
    ]);
  });

  test("--wait fails when the time is over, and says what about an earlier generation does not count", async () => {
    const respond = ({ method, path }: KubeRequest) =>
      method === "GET" && path === INSTALLATION
        ? {
            status: 200,
            text: JSON.stringify({ metadata: { name: "default", generation: 2 }, status: conditions("Ready") }),
          }
        : undefined;
    const { ctl } = clusterOf({ [INSTALLATION]: { metadata: { name: "default" } } }, { respond });
    const { code, stderr } = await ctl("install --wait --timeout=3s");

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("not ready within 3 s");
  });
});

describe("without a cluster", () => {
  test.each([
    ["install", "dpkg -i"],
    ["uninstall", "make uninstall"],
  ])("%s says how it is done on a host", async (command, way) => {
    const failure = new PluginError("io-failure", "Cannot read kubeconfig");
    const openKubeClient = () => Promise.reject(failure);
    const run = (env: Readonly<Record<string, string>>) => runInside([command], { env, openKubeClient });

    expect((await run({ HOME: "/root" })).stderr).toContain(way);
    expect((await run({})).stderr).toContain(way);
    expect((await run({ KUBECONFIG: "/k" })).stderr).not.toContain(way);
  });
});

describe("uninstall", () => {
  const INSTALLED = {
    [INSTALLATION]: { metadata: { name: "default" } },
    [OPERATOR]: { metadata: { name: operator, namespace: operator } },
  };
  const pod = (namespace: string, name: string, more: object = {}) => ({
    [`/api/v1/pods/${name}`]: {
      metadata: { namespace, name },
      spec: {},
      status: { phase: "Running", podIP: "10.0.0.1" },
      ...more,
    },
  });

  test("deletes the Installation, then the operator; definitions and pools are kept", async () => {
    const { ctl, objects, requests } = clusterOf({
      ...INSTALLED,
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/x": {},
    });
    const { code, stdout } = await ctl("uninstall");

    expect(code).toBe(EXIT_OK);
    expect(stdout).toContain(`Deployment ${operator}/${operator} deleted\n`);
    expect(objects.has(INSTALLATION)).toBe(false);
    expect(requests.filter((request) => request.startsWith("DELETE")).join("\n")).not.toContain(
      "customresourcedefinitions",
    );
    expect(requests.indexOf(`DELETE ${INSTALLATION}`)).toBeLessThan(requests.indexOf(`DELETE ${OPERATOR}`));
  });

  test("deletes the overlay after the default Installation is gone: its removal uses both", async () => {
    const overlay = `${GROUP}/installations/overlay`;
    let reads = 0;
    const respond = ({ method, path }: KubeRequest) => {
      if (path !== INSTALLATION) return undefined;
      if (method === "DELETE") reads = 1;
      const isKept = method === "DELETE" || (method === "GET" && reads > 0 && reads++ < 3);
      return isKept ? { status: 200, text: JSON.stringify({ metadata: { name: "default" } }) } : undefined;
    };
    const { ctl, requests, objects } = clusterOf(
      { ...INSTALLED, [overlay]: { metadata: { name: "overlay" } } },
      {
        respond: (request) => {
          if (reads >= 3) objects.delete(INSTALLATION);
          return respond(request);
        },
      },
    );
    expect((await ctl("uninstall")).code).toBe(EXIT_OK);

    const reading = requests.lastIndexOf(`GET ${INSTALLATION}`);
    expect(reading).toBeGreaterThan(requests.indexOf(`DELETE ${INSTALLATION}`));
    expect(requests.indexOf(`DELETE ${overlay}`)).toBeGreaterThan(reading);
    expect(requests.indexOf(`DELETE ${OPERATOR}`)).toBeGreaterThan(requests.indexOf(`DELETE ${overlay}`));
  });

  test("deletes an overlay that an interrupted removal has left", async () => {
    const overlay = `${GROUP}/installations/overlay`;
    const { ctl, objects } = clusterOf({ [overlay]: { metadata: { name: "overlay" } } });

    expect((await ctl("uninstall")).code).toBe(EXIT_OK);
    expect(objects.has(overlay)).toBe(false);
  });

  test("ends when the user stops it", async () => {
    const stop = new AbortController();
    const respond = ({ method, path }: KubeRequest) =>
      path === INSTALLATION && method === "DELETE" ? { status: 200, text: "{}" } : undefined;
    const { ctl, objects } = clusterOf(INSTALLED, { respond });
    const { code } = await ctl("uninstall", { signal: stop.signal, wait: async () => stop.abort() });

    expect(code).not.toBe(EXIT_OK);
    expect(objects.has(OPERATOR)).toBe(true);
  });

  test("refuses while pods use the network, and names them", async () => {
    const pods = {
      ...pod("default", "web"),
      ...pod("kube-system", "proxy", { spec: { hostNetwork: true } }),
      ...pod("default", "done", { status: { phase: "Succeeded", podIP: "10.0.0.2" } }),
      ...pod(systemNamespace, "controllers"),
    };
    const { ctl, objects } = clusterOf({ ...INSTALLED, ...pods });
    const { code, stderr } = await ctl("uninstall");

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("Cannot uninstall: 1 pod on the network: default/web (");
    expect(objects.has(INSTALLATION)).toBe(true);
    expect((await ctl("uninstall --force")).code).toBe(EXIT_OK);
  });

  test("names the commands that end the pods of a Deployment", async () => {
    const owned = (name: string, kind: string, owner: string) =>
      pod("kube-system", name, {
        metadata: { namespace: "kube-system", name, ownerReferences: [{ kind, name: owner }] },
      });
    const pods = {
      ...owned("coredns-5d78-a", "ReplicaSet", "coredns-5d78"),
      ...owned("coredns-5d78-b", "ReplicaSet", "coredns-5d78"),
      ...owned("data-0", "StatefulSet", "data"),
      ...owned("log-x", "DaemonSet", "log"),
      ...pod("default", "web"),
    };
    const { stderr } = await clusterOf({ ...INSTALLED, ...pods }).ctl("uninstall");

    expect(stderr.split("\n").filter((line) => line.startsWith("  "))).toEqual([
      "  kubectl --namespace kube-system scale deployment/coredns --replicas=0",
      "  kubectl --namespace kube-system scale statefulset/data --replicas=0",
      "  kubectl --namespace kube-system delete daemonset/log",
      "  kubectl --namespace default delete pod/web",
    ]);
  });

  test("--crds deletes definitions, and releases pools whose finalizers would keep them", async () => {
    const pools = {
      [`/apis/${API_VERSION}/ippools/blue`]: { metadata: { name: "blue", finalizers: ["x"] } },
    };
    const { ctl, requests } = clusterOf({ ...INSTALLED, ...pools });
    await ctl("uninstall --crds");

    const pool = requests.indexOf(`PATCH /apis/${API_VERSION}/ippools/blue`);
    const definition = requests.findIndex((request) => /^DELETE .*customresourcedefinitions\/ippools/.test(request));
    expect(pool).toBeGreaterThan(0);
    expect(definition).toBeGreaterThan(pool);
  });

  test("shows what the operator waits for, and says what to do when the time is over", async () => {
    const installation = {
      metadata: { name: "default" },
      status: { conditions: [{ type: "Ready", status: "False", message: "node two cannot be cleaned up" }] },
    };
    const respond = ({ method, path }: KubeRequest) =>
      path === INSTALLATION && method === "DELETE" ? { status: 200, text: "{}" } : undefined;
    const { ctl, requests } = clusterOf({ ...INSTALLED, [INSTALLATION]: installation }, { respond });
    const { code, stdout, stderr } = await ctl("uninstall --timeout=2s --skip-nodes");

    expect(code).toBe(EXIT_FAILED);
    expect(stdout).toContain("waiting for the operator: node two cannot be cleaned up\n");
    expect(stderr).toContain("--skip-nodes");
    expect(requests).toContain(`PATCH ${INSTALLATION}`);
  });

  test("refuses without an operator, and what a manifest has installed", async () => {
    const { ctl } = clusterOf({ [INSTALLATION]: { metadata: { name: "default" } } });
    expect((await ctl("uninstall")).stderr).toContain("there is no operator that removes the Installation");

    const manifest = clusterOf(daemonSet("kube-system", nodeAgent));
    expect((await manifest.ctl("uninstall")).stderr).toContain(
      `kubectl apply --server-side -f ${product}-uninstall.yaml`,
    );
  });

  test("succeeds if nothing is installed", async () => {
    const { ctl } = clusterOf();

    expect(await ctl("uninstall")).toMatchObject({ code: EXIT_OK, stdout: `${title} is uninstalled.\n` });
  });

  test("reports what the API refuses", async () => {
    const respond = ({ method }: KubeRequest) => (method === "DELETE" ? failed(403, "you may not") : undefined);
    const { ctl } = clusterOf(INSTALLED, { respond });

    expect((await ctl("uninstall")).stderr).toContain("403 Forbidden: you may not");
  });
});
