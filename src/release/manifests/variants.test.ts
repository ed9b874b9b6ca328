import { describe, expect, test } from "bun:test";
import { findingsIn, networkListText } from "../../../test/support/rendered-text.ts";
import { identity } from "../../identity.ts";
import { ipPool } from "../../model/ip-pool.ts";
import { nodeAgentConfiguration } from "../../model/node-agent-configuration.ts";
import type { KubeObject } from "../kube-object.ts";
import { consoleManifestObjects, type ManifestVariant, uninstallObjects, variantObjects } from "./variants.ts";

const VARIANTS: readonly ManifestVariant[] = [
  { datastore: "kubernetes", network: "own" },
  { datastore: "kubernetes", network: "other" },
  { datastore: "kubernetes", network: "fabric" },
  { datastore: "etcd", network: "own" },
  { datastore: "etcd", network: "other" },
];

function objectsOf(variant: ManifestVariant): readonly KubeObject[] {
  const { settings, components } = variantObjects(variant, "v1.2.3");
  return [...settings, ...components];
}

function settingsOf(variant: ManifestVariant): Readonly<Record<string, string>> {
  const map = objectsOf(variant).find(({ kind }) => kind === "ConfigMap");
  return (map as { readonly data?: Readonly<Record<string, string>> } | undefined)?.data ?? {};
}

/** The variables of a container, with their values, or the key of the setting that they come from. */
function variablesOf(variant: ManifestVariant, name: string): Readonly<Record<string, string>> {
  const workloads = objectsOf(variant).filter(({ kind }) => kind === "DaemonSet" || kind === "Deployment");
  const containers = workloads.flatMap((workload) => {
    const { spec } = (workload as unknown as Workload).spec.template;
    return [...(spec.initContainers ?? []), ...spec.containers];
  });
  const env = containers.find((container) => container.name === name)?.env ?? [];
  return Object.fromEntries(
    env
      .filter(({ valueFrom }) => valueFrom?.configMapKeyRef?.optional !== true)
      .map((each) => [each.name, each.value ?? `setting ${each.valueFrom?.configMapKeyRef?.key}`]),
  );
}

interface Workload {
  readonly spec: {
    readonly template: {
      readonly spec: { readonly initContainers?: readonly Container[]; readonly containers: readonly Container[] };
    };
  };
}

interface Container {
  readonly name: string;
  readonly env: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: { readonly configMapKeyRef?: { readonly key: string; readonly optional?: boolean } };
  }[];
}

const variable = (name: string) => `${identity.environmentPrefix}${name}`;

describe.each(VARIANTS)("the manifest for $datastore, network $network", (variant) => {
  test("has a network config without any finding", async () => {
    const { findings } = await findingsIn(networkListText({ objects: objectsOf(variant) }));
    expect(findings).toEqual([]);
  });

  test("hands every setting to a container, and no other", () => {
    const used = ["install", identity.nodeAgent, identity.controllers].flatMap((name) =>
      Object.values(variablesOf(variant, name)).flatMap((value) => /^setting (?!undefined)(.*)/.exec(value)?.[1] ?? []),
    );
    expect(new Set(used)).toEqual(new Set(Object.keys(settingsOf(variant))));
  });

  test("puts everything into the namespace of the system", () => {
    const namespaces = objectsOf(variant).flatMap(({ kind, metadata }) =>
      /^(Cluster|CSIDriver|Validating)/.test(kind) ? [] : [metadata.namespace],
    );
    expect(new Set(namespaces)).toEqual(new Set(["kube-system"]));
  });
});

describe("the manifests", () => {
  test("of etcd have a placeholder for its endpoints, which the installation of a node refuses", () => {
    const etcd = { datastore: "etcd", network: "own" } as const;
    expect(settingsOf(etcd)["etcd_endpoints"]).toContain("<");
    expect(variablesOf(etcd, "install")).toMatchObject({ ETCD_ENDPOINTS: "setting etcd_endpoints" });
    expect(variablesOf(etcd, identity.controllers)).toMatchObject({
      DATASTORE_TYPE: "etcdv3",
      ETCD_ENDPOINTS: "setting etcd_endpoints",
      ETCD_CA_CERT_FILE: "setting etcd_ca",
    });
  });

  test("have a valid pool if our plugin connects the pods", () => {
    const [spec] = JSON.parse(settingsOf({ datastore: "kubernetes", network: "own" })["default_pools"] ?? "");
    const { apiVersion, kind } = ipPool;
    expect(ipPool.decode({ apiVersion, kind, metadata: { name: "default" }, spec })).toMatchObject({ ok: true });
  });

  test("have valid settings of the node agent if it sets no routes", () => {
    const { apiVersion, kind } = nodeAgentConfiguration;
    for (const network of ["other", "fabric"] as const) {
      const spec = JSON.parse(settingsOf({ datastore: "kubernetes", network })["node_agent_configuration"] ?? "");
      const decoded = nodeAgentConfiguration.decode({ apiVersion, kind, metadata: { name: "default" }, spec });
      expect(decoded).toMatchObject({ ok: true, value: { spec: { routing: "Disabled" } } });
    }
  });

  test("leave the CNI configuration alone if another plugin connects the pods", () => {
    for (const { network, datastore } of VARIANTS) {
      for (const container of ["install", identity.nodeAgent]) {
        const expected = network === "other" ? "false" : undefined;
        expect(variablesOf({ network, datastore }, container)[variable("MANAGE_CNI")]).toBe(expected);
      }
    }
  });

  test("use the ranges of the Nodes if the network between the nodes has the routes", () => {
    const { plugins } = JSON.parse(
      networkListText({ objects: objectsOf({ datastore: "kubernetes", network: "fabric" }) }),
    );
    expect(plugins[0].ipam).toEqual({ type: "host-local", ranges: [[{ subnet: "usePodCidr" }]] });
  });

  test("have a console for each datastore, with an account that may do nothing, which the controllers are told of", () => {
    for (const datastore of ["kubernetes", "etcd"] as const) {
      const objects = consoleManifestObjects(datastore, "v1.2.3");
      const settings = objects.find(({ kind }) => kind === "ConfigMap");
      const controllers = JSON.stringify(objectsOf({ datastore, network: "own" }));

      expect(controllers).toContain(
        `{"name":"CONSOLE","valueFrom":{"configMapKeyRef":{"name":"${settings?.metadata.name}"`,
      );
      expect(settings).toMatchObject({ data: { mode: "Enabled" } });
      const subjects = objects.flatMap((object) => (object.kind === "RoleBinding" ? [object["subjects"]] : []));
      expect(subjects).toEqual([[{ kind: "ServiceAccount", name: identity.controllers, namespace: "kube-system" }]]);
      const deployment = JSON.stringify(objects.find(({ kind }) => kind === "Deployment"));
      expect(deployment.includes(`"key":"etcd_endpoints"`)).toBe(datastore === "etcd");
      expect(deployment).toContain(
        `{"name":"ALERTS_SERVICE","valueFrom":{"configMapKeyRef":{"name":"${settings?.metadata.name}","key":"alerts","optional":true}}}`,
      );
    }
  });

  test("remove the product from the nodes with an account that may do nothing", () => {
    const [account, daemonSet] = uninstallObjects("v1.2.3");
    expect(account).toMatchObject({ kind: "ServiceAccount", metadata: { name: daemonSet?.metadata.name } });
    expect(uninstallObjects("v1.2.3")).toHaveLength(2);
  });
});
