import { describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { fakeCluster } from "../../../test/support/fake-cluster.ts";
import { injectorConfig } from "../../../test/support/injector-config.ts";
import { identity } from "../../identity.ts";
import { insertSidecar, sidecarImageIn } from "../../mesh/insert-sidecar.ts";
import { VERSION } from "../../version.ts";
import { formatYaml } from "../../yaml.ts";

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

    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const image = `${identity.imageRegistry}${identity.product}:${VERSION}`;
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

  test("refuses a mesh without template by name", async () => {
    const { code, stdout, stderr } = await inCluster([], { [`${MESH}/istiod`]: controlPlane("istio/pilot:1.8.6") });

    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain("1.8 has no template; there are 1.6, 1.7, 1.9, 1.10 and 1.15");
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
});
