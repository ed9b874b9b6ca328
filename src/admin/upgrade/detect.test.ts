import { describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { objectTable } from "../../../test/support/object-table.ts";
import { EXIT_FAILED, EXIT_OK } from "../main/command.ts";

const env = [
  { name: "DATASTORE_TYPE", value: "kubernetes" },
  { name: "VENDOR_NETWORKING_BACKEND", value: "bird" },
];
const agents = (image: string) => ({
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  metadata: { name: "vendor-node", namespace: "kube-system" },
  spec: {
    selector: { matchLabels: { "k8s-app": "vendor-node" } },
    template: { spec: { containers: [{ name: "vendor-node", image, env }] } },
  },
});
const items = [
  agents("vendor/node:v3.26.1"),
  { apiVersion: "v1", kind: "Node", metadata: { name: "a" } },
  {
    apiVersion: "crd.vendor.org/v1",
    kind: "ClusterInformation",
    metadata: { name: "default" },
    spec: { vendorVersion: "v3.26.1" },
  },
  {
    apiVersion: "crd.vendor.org/v1",
    kind: "HostEndpoint",
    metadata: { name: "a-all" },
    spec: { interfaceName: "*" },
  },
  {
    ...{ apiVersion: "crd.vendor.org/v1", kind: "HostEndpoint", metadata: { name: "a-eth0" } },
    spec: { interfaceName: "eth0" },
  },
];

function run(words: string, objects: readonly object[] = items) {
  const { client } = objectTable(objects, { "/version": { gitVersion: "v1.34.1" } });
  const openKubeClient = async () => client;
  return runInside(words.split(" "), { openKubeClient, env: { KUBECONFIG: "/k" }, version: "v3.29.0" });
}

describe("upgrade detect", () => {
  test("shows what is installed", async () => {
    const { code, stdout } = await run("upgrade detect");
    expect(code).toBe(EXIT_OK);
    expect(stdout).toBe(
      [
        "Installed by:               manifest, networking and policy",
        "Datastore:                  kubernetes, stored as crd.vendor.org/v1, which is to be moved",
        "Release:                    v3.26.1 (this tool: v3.29.0)",
        "Orchestrator:               v1.34.1, 1 node",
        "Application layer policy:   not in use",
        "Host endpoints by hand:     a-all (all interfaces)",
        "                            a-eth0 (not all interfaces)",
        "Owner references:           none",
        "",
        "PART                                                RELEASE",
        "DaemonSet kube-system/vendor-node                   v3.26.1",
        "ClusterInformation default of the earlier storage   v3.26.1",
        "",
      ].join("\n"),
    );
  });

  test("names the option that decides what is not certain", async () => {
    const unknown = [agents("vendor/node@sha256:0123"), ...items.slice(1)];
    const { code, stdout } = await run("upgrade detect", unknown);
    expect(code).toBe(EXIT_FAILED);
    expect(stdout).toContain("Release:                    unclear (this tool: v3.29.0)");
    expect(stdout).toContain("add --from-version VERSION");
    expect((await run("upgrade detect --from-version v3.26.1", unknown)).code).toBe(EXIT_OK);
  });

  test("prints the same as JSON", async () => {
    const { stdout } = await run("upgrade detect -o json");
    expect(JSON.parse(stdout)).toMatchObject({
      method: { kind: "manifest", network: "own" },
      storage: "former",
      version: "v3.26.1",
      target: "v3.29.0",
      hostEndpoints: ["a-all"],
      obstacles: [],
    });
    const { code, stdout: unclear } = await run("upgrade detect -o json", []);
    expect(code).toBe(EXIT_FAILED);
    expect(JSON.parse(unclear).obstacles[0].message).toContain("is not installed");
  });
});
