import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { EXAMPLES, type Example } from "../../../test/support/installations.ts";
import {
  differenceText,
  findingsIn,
  networkListText,
  objectText,
  renderedText,
} from "../../../test/support/rendered-text.ts";
import { identity } from "../../identity.ts";
import type { KubeObject } from "../kube-object.ts";
import { type Rendered, renderInstallation, renderUninstall } from "./render-installation.ts";

const names = Object.keys(EXAMPLES);

function render({ installation, facts }: Example): Rendered {
  return renderInstallation(installation, facts);
}

function exampleNamed(name: string): Example {
  const found = EXAMPLES[name];
  if (found === undefined) throw new Error(`no example "${name}"`);
  return found;
}

/** `GOLDEN=write` writes the files again. */
async function expectText(name: string, text: string): Promise<void> {
  const file = join(import.meta.dir, "golden", name);
  if (process.env["GOLDEN"] === "write") await Bun.write(file, text);
  expect(text).toBe(await Bun.file(file).text());
}

function ipamOf(rendered: Rendered) {
  return JSON.parse(networkListText(rendered)).plugins[0].ipam;
}

function podAnnotations({ objects }: Rendered, kind: "DaemonSet" | "Deployment"): unknown {
  const found = objects.find((object) => object.kind === kind) as { readonly spec?: unknown } | undefined;
  const spec = found?.spec as { readonly template: { readonly metadata: { readonly annotations?: unknown } } };
  return spec.template.metadata.annotations;
}

describe("renderInstallation()", () => {
  test("renders the default installation as its file has it", async () => {
    await expectText("default.yaml", renderedText(render(exampleNamed("default"))));
  });

  test.each(names.filter((name) => name !== "default"))(
    "differs from the default as the file says: %s",
    async (name) => {
      await expectText(`${name}.txt`, differenceText(render(exampleNamed("default")), render(exampleNamed(name))));
    },
  );

  test("demands no bound tokens with etcd: Kubernetes 1.30 cannot bind them", () => {
    const policies = (name: string) =>
      render(exampleNamed(name)).objects.flatMap(({ kind, metadata }) =>
        kind.startsWith("ValidatingAdmissionPolicy") ? [metadata.name] : [],
      );
    const tokens = `${identity.product}-node-tokens`;

    expect(policies("default").filter((name) => name === tokens)).toHaveLength(2);
    expect(policies("etcd-with-secret")).toContain(`${identity.product}-node-records`);
    expect(policies("etcd-with-secret")).not.toContain(tokens);
  });

  test("has policies without functions that expressions of Kubernetes 1.30 lack", () => {
    const policies = render(exampleNamed("etcd-with-secret")).objects.filter(
      ({ kind }) => kind === "ValidatingAdmissionPolicy",
    );
    expect(policies.length).toBeGreaterThan(5);
    const unknown = /\b(isIP|ip|isCIDR|cidr|isSemver|semver|format\.\w+|lists\.range|sets\.\w+|transform\w+)\(/;
    expect(policies.flatMap((policy) => unknown.exec(JSON.stringify(policy))?.[0] ?? [])).toEqual([]);
  });

  test("renders the removal from the nodes as its file has it", async () => {
    const { installation, facts } = exampleNamed("private-registry");
    await expectText("uninstall.yaml", objectText(renderUninstall(installation, facts)));
  });

  test("uses the families of the platform's ranges if there is no pool", () => {
    const { installation, facts } = exampleNamed("host-local-both-families");
    const network = { ...installation.network, ipPools: [] };
    const rangesWith = (platformPodCidrs: readonly string[]) =>
      ipamOf(renderInstallation({ ...installation, network }, { ...facts, platformPodCidrs })).ranges;

    expect(rangesWith([])).toEqual([[{ subnet: "usePodCidr" }]]);
    expect(rangesWith(["fd00:10::/48"])).toEqual([[{ subnet: "usePodCidrIPv6" }]]);
    expect(rangesWith(["10.244.0.0/16", "fd00:10::/48"])).toEqual([
      [{ subnet: "usePodCidr" }],
      [{ subnet: "usePodCidrIPv6" }],
    ]);
  });

  test("does not count pools that are disabled or not for workloads", () => {
    const { installation, facts } = exampleNamed("features");
    const pools = facts.pools.map((pool) =>
      pool.spec.cidr.includes(":") ? { ...pool, spec: { ...pool.spec, allowedUses: ["Tunnel" as const] } } : pool,
    );
    expect(ipamOf(renderInstallation(installation, facts))).toMatchObject({ assign_ipv6: "true" });
    expect(ipamOf(renderInstallation(installation, { ...facts, pools }))).toMatchObject({ assign_ipv6: "false" });
  });

  test.each(names)("writes a network config without any finding: %s", async (name) => {
    const { findings } = await findingsIn(networkListText(render(exampleNamed(name))));
    expect(findings).toEqual([]);
  });

  test("renders the same from the same", () => {
    for (const name of names) {
      expect(render(exampleNamed(name))).toEqual(render(structuredClone(exampleNamed(name))));
    }
  });

  test("labels every object as the operator's", () => {
    for (const name of names) {
      const { installation, facts } = exampleNamed(name);
      const objects = [...render({ installation, facts }).objects, renderUninstall(installation, facts)];
      const labels = objects.map(({ metadata }) => metadata.labels?.["app.kubernetes.io/managed-by"]);
      expect(new Set(labels)).toEqual(new Set([identity.operator]));
    }
  });

  test("names every object once", () => {
    const keyOf = ({ kind, metadata }: KubeObject) => `${kind} ${metadata.namespace} ${metadata.name}`;
    for (const name of names) {
      const keys = render(exampleNamed(name)).objects.map(keyOf);
      expect(new Set(keys).size).toBe(keys.length);
    }
  });
});

describe("the console", () => {
  const objectsOf = (name: string) => render(exampleNamed(name)).objects;
  const named = (name: string, kind: string) =>
    objectsOf(name).find((object) => object.kind === kind && object.metadata.name === identity.console);

  test("is off unless it is switched on", () => {
    expect(objectsOf("default").filter(({ metadata }) => metadata.name === identity.console)).toEqual([]);
  });

  test("has an account that may do nothing, and no token of it", () => {
    const text = JSON.stringify(named("console", "Deployment"));

    expect(text).toContain(`"serviceAccountName":"${identity.console}","automountServiceAccountToken":false`);
    expect(named("console", "ServiceAccount")).toMatchObject({ automountServiceAccountToken: false });
    const granted = objectsOf("console").flatMap(({ kind, subjects }) => (/Binding$/.test(kind) ? [subjects] : []));
    expect(granted.length).toBeGreaterThan(3);
    expect(JSON.stringify(granted)).not.toContain(identity.console);
  });

  test("gets its certificate, but not the key of the authority", () => {
    const text = JSON.stringify(named("console", "Deployment"));
    expect(text).toContain('"items":[{"key":"tls.crt","path":"tls.crt"},{"key":"tls.key","path":"tls.key"}]');
    expect(text).not.toContain("ca.key");
  });

  test("reads etcd as the controllers do", () => {
    const variables = (workload: string) => {
      const found = objectsOf("console-with-etcd").find(
        ({ kind, metadata }) => kind === "Deployment" && metadata.name === workload,
      );
      const { template } = (found ?? expect.unreachable())["spec"] as {
        readonly template: { readonly spec: PodSpec; readonly metadata: object };
      };
      const { containers, volumes } = template.spec;
      const env = containers[0]?.env.filter(({ name }) => /^(ETCD_|DATASTORE_TYPE)/.test(name));
      return {
        env,
        metadata: Object(template.metadata).annotations,
        secrets: volumes.find(({ name }) => /etcd/.test(name)),
      };
    };
    expect(variables(identity.console)).toEqual(variables(identity.controllers));
    expect(variables(identity.console).env).toHaveLength(5);
  });

  interface PodSpec {
    readonly containers: readonly { readonly env: readonly { readonly name: string }[] }[];
    readonly volumes: readonly { readonly name: string }[];
  }
});

describe("the annotations of pods", () => {
  const { installation, facts } = exampleNamed("default");
  const changed = (network: Partial<typeof installation.network>) => ({
    ...installation,
    network: { ...installation.network, ...network },
  });
  const before = renderInstallation(installation, facts);

  test("change with the network config, so that the node agents are replaced", () => {
    const after = renderInstallation(changed({ mtu: 1400 }), facts);
    expect(podAnnotations(after, "DaemonSet")).not.toEqual(podAnnotations(before, "DaemonSet"));
    expect(podAnnotations(after, "Deployment")).toEqual(podAnnotations(before, "Deployment"));
  });

  test("stay if the network config stays, whatever else changes", () => {
    const pools = structuredClone(installation.network.ipPools);
    for (const after of [
      renderInstallation(changed({ bgp: "Disabled", ipPools: pools }), facts),
      renderInstallation(installation, { ...facts, pools: installation.network.ipPools }),
    ]) {
      expect(podAnnotations(after, "DaemonSet")).toEqual(podAnnotations(before, "DaemonSet"));
    }
  });

  test("change with the Secret of etcd, in both workloads", () => {
    const etcd = exampleNamed("etcd-with-secret");
    const renewed = renderInstallation(etcd.installation, { ...etcd.facts, etcdSecretHash: "other" });
    for (const kind of ["DaemonSet", "Deployment"] as const) {
      expect(podAnnotations(renewed, kind)).not.toEqual(podAnnotations(render(etcd), kind));
    }
  });
});
