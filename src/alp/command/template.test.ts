import { describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { fakeCluster } from "../../../test/support/fake-cluster.ts";
import { injectorConfig } from "../../../test/support/injector-config.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { VERSION } from "../../version.ts";
import { formatYaml } from "../../yaml.ts";
import { insertSidecar, sidecarImageIn } from "../mesh/insert-sidecar.ts";

const CONFIG_MAP = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: {
    name: "istio-sidecar-injector",
    namespace: "istio-system",
    uid: "u",
    resourceVersion: "7",
    labels: { a: "b" },
  },
  data: { config: injectorConfig("1.15"), values: '{"global":{}}' },
};
const MESH = "/apis/apps/v1/namespaces/istio-system/deployments";
const MAPS = "/api/v1/namespaces/istio-system/configmaps";

function controlPlane(image: string, labels: Readonly<Record<string, string>> = {}) {
  return { metadata: { labels }, spec: { template: { spec: { containers: [{ image }] } } } };
}

function inCluster(args: readonly string[], objects: Readonly<Record<string, object>>) {
  const { client } = fakeCluster({ objects });
  const env = { KUBECONFIG: "/kubeconfig" };
  return runInside(["alp", "template", ...args], { openKubeClient: async () => client, env });
}

describe("alp template", () => {
  test("prints the ConfigMap of a file with the sidecar of this release", async () => {
    const files = { "injector.yaml": formatYaml(CONFIG_MAP) };
    const { code, stdout, stderr } = await runInside(
      ["alp", "template", "--mesh-version", "1.15", "-f", "injector.yaml"],
      {
        files,
      },
    );

    const image = `${identity.imageRegistry}${identity.product}:${VERSION}`;
    expect({ code, stderr }).toEqual({ code: 0, stderr: `Image of the sidecar: ${image} (--image changes it)\n` });
    const { config } = insertSidecar(CONFIG_MAP.data.config, { minor: "1.15", image });
    expect(Bun.YAML.parse(stdout)).toEqual({
      ...CONFIG_MAP,
      metadata: { name: "istio-sidecar-injector", namespace: "istio-system", labels: { a: "b" } },
      data: { config, values: CONFIG_MAP.data.values },
    });
    expect(stdout).toContain("  config: |\n");
  });

  test("reads stdin, and says if the sidecar is there already or is replaced", async () => {
    const args = ["alp", "template", "--mesh-version", "1.15.3", "-f", "-", "-o", "json"];
    const first = await runInside([...args, "--image", "a/b:v1"], { stdin: JSON.stringify(CONFIG_MAP) });
    const again = await runInside([...args, "--image", "a/b:v1"], { stdin: first.stdout });
    const newer = await runInside([...args, "--image", "a/b:v2"], { stdin: first.stdout });

    expect(again.stdout).toBe(first.stdout);
    expect(again.stderr).toBe("The injector has this sidecar already: a/b:v1\n");
    expect(newer.stderr).toBe("Replaces a/b:v1 by a/b:v2\n");
  });

  test("keeps the registry of the sidecar that is there, and takes it out again", async () => {
    const args = ["alp", "template", "-f", "-", "-o", "json"];
    const version = ["--mesh-version", "1.15"];
    const stdin = JSON.stringify(CONFIG_MAP);
    const older = await runInside([...args, ...version, "--image", "mirror:5000/own/vendor:v1@sha256:00aa"], { stdin });
    const newer = await runInside([...args, ...version], { stdin: older.stdout });
    const removed = await runInside([...args, "--remove"], { stdin: newer.stdout });
    const nothing = await runInside([...args, "--remove"], { stdin });

    const image = `mirror:5000/own/vendor:${VERSION}`;
    expect(newer.stderr).toBe(`Replaces mirror:5000/own/vendor:v1@sha256:00aa by ${image} (--image changes it)\n`);
    expect(sidecarImageIn(JSON.parse(newer.stdout).data.config)).toBe(image);
    expect(removed.stderr).toBe(`Removes ${image}\n`);
    expect(JSON.parse(removed.stdout).data.config.trimEnd()).toBe(CONFIG_MAP.data.config.trimEnd());
    expect({ code: nothing.code, stderr: nothing.stderr }).toEqual({
      code: 0,
      stderr: "The injector has no sidecar to remove\n",
    });
  });

  test.each([
    "",
    "a b:v1",
    "a/{{ .Values.x }}:v1",
    "registry.example.org/",
    "/vendor:v1",
    "Vendor:v1",
    "vendor:",
    "vendor:v1@sha256",
    "https://a/b:v1",
    "a//b",
    "a/b:v1\nc: d",
  ])("refuses the image %j", async (image) => {
    const { code, stderr } = await inCluster(["--mesh-version", "1.15", `--image=${image}`], {});

    expect(code).toBe(2);
    expect(stderr).toContain("--image");
  });

  test.each(["vendor", "localhost/vendor:v1", "[fd00::1]:5000/a/b_c/vendor:v1@sha256:00aa"])(
    "accepts the image %s",
    async (image) => {
      const args = ["alp", "template", "--mesh-version=1.15", "-f", "-", "-o", "patch", "--image", image];
      const { stdout } = await runInside(args, { stdin: JSON.stringify(CONFIG_MAP) });

      expect(sidecarImageIn(JSON.parse(stdout).data.config)).toBe(image);
    },
  );

  test.each([
    "-f - --mesh-version=1.15 --revision=canary",
    "-f - --mesh-version=1.15 --namespace=mesh",
    "-f - --mesh-version=1.15 --kubeconfig=k",
    "--remove --image=a/b:v1",
    "--remove --mesh-version=1.15",
  ])("refuses options without effect: %s", async (args) => {
    const { code, stderr } = await inCluster(args.split(" "), {});

    expect(code).toBe(2);
    expect(stderr).toContain("cannot be combined");
  });

  test("finds injector, version and registry in the cluster", async () => {
    const daemonSet = {
      metadata: { namespace: identity.systemNamespace },
      spec: {
        template: { spec: { containers: [{ name: identity.nodeAgent, image: "mirror:5000/own/vendor:v0.0.1" }] } },
      },
    };
    const { code, stdout } = await inCluster(["-o", "patch"], {
      [`${MAPS}/istio-sidecar-injector`]: CONFIG_MAP,
      [`${MESH}/istiod`]: controlPlane("docker.io/istio/pilot:1.15.3-distroless"),
      [`/apis/apps/v1/namespaces/${identity.systemNamespace}/daemonsets/${identity.nodeAgent}`]: daemonSet,
    });

    expect(code).toBe(0);
    const patch = JSON.parse(stdout);
    expect(Object.keys(patch.data)).toEqual(["config"]);
    expect(sidecarImageIn(patch.data.config)).toBe(`mirror:5000/own/vendor:${VERSION}`);
  });

  test("of a revision, whose image is named by its digest", async () => {
    const labels = { "operator.istio.io/version": "1.15.0" };
    const { code } = await inCluster(["--revision", "canary", "-n", "mesh"], {
      "/api/v1/namespaces/mesh/configmaps/istio-sidecar-injector-canary": CONFIG_MAP,
      "/apis/apps/v1/namespaces/mesh/deployments/istiod-canary": controlPlane("istio/pilot@sha256:00", labels),
    });

    expect(code).toBe(0);
  });

  test("refuses a mesh that is older than every template by name", async () => {
    const { code, stdout, stderr } = await inCluster([], { [`${MESH}/istiod`]: controlPlane("istio/pilot:1.5.6") });

    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain("1.5 has no template; the first one is for 1.6");
  });

  test("says which objects of the mesh it does not find", async () => {
    const without = await inCluster([], {});
    const unnamed = await inCluster(["--mesh-version", "1.15"], {});

    expect([without.code, unnamed.code]).toEqual([1, 1]);
    expect(without.stderr).toContain("--mesh-version");
    expect(unnamed.stderr).toContain("istio-system/istio-sidecar-injector");
  });

  test("needs the version of the mesh with a file, and a ConfigMap in it", async () => {
    const withoutVersion = await runInside(["alp", "template", "-f", "x.yaml"], { files: { "x.yaml": "a: b\n" } });
    const withoutConfig = await runInside(["alp", "template", "--mesh-version", "1.6", "-f", "x.yaml"], {
      files: { "x.yaml": "a: b\n" },
    });

    expect(withoutVersion.code).toBe(2);
    expect(withoutConfig.code).toBe(1);
    expect(withoutConfig.stderr).toContain("data.config");
  });

  test("says how to name a cluster if there is no kubeconfig in the home directory", async () => {
    const missing = new PluginError(
      "config-invalid",
      'Cannot read kubeconfig "/home/.kube/config": there is no such file',
    );
    const openKubeClient = () => Promise.reject(missing);
    const usual = await runInside(["alp", "template"], { openKubeClient, env: { HOME: "/home" } });
    const named = await runInside(["alp", "template"], { openKubeClient, env: { HOME: "/home", KUBECONFIG: "/k" } });

    expect([usual.code, named.code]).toEqual([1, 1]);
    expect(usual.stderr).toContain("there is no such file; use --kubeconfig or set KUBECONFIG");
    expect(named.stderr).not.toContain("set KUBECONFIG");
  });

  test("says what is wrong with a file, a directory and a version", async () => {
    const isFolder = () => Promise.reject(Object.assign(new Error("no"), { code: "EISDIR" }));
    const args = ["alp", "template", "--mesh-version", "1.15", "-f", "x.yaml"];
    const broken = await runInside(args, { files: { "x.yaml": "a: [\n" } });
    const folder = await runInside(args, { readFile: isFolder });
    const version = await runInside(["alp", "template", "--mesh-version", "1.15.x", "-f", "x.yaml"], { files: {} });

    expect([broken.code, folder.code, version.code]).toEqual([1, 1, 1]);
    expect(broken.stderr).toContain('Cannot use "x.yaml": it is not valid YAML: line ');
    expect(folder.stderr).toContain('Cannot read "x.yaml": it is a directory');
    expect(version.stderr).toContain('"1.15.x"');
  });
});
