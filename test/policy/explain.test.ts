/** `vendorctl policy explain`, the built tool, on real datastores. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { openDatastore } from "../../src/datastore/open.ts";
import { identity } from "../../src/identity.ts";
import { ENDPOINT, NETWORK_POLICY, PROFILE } from "../../src/model/kinds.ts";
import { networkPolicy } from "../../src/model/network-policy.ts";
import { profile } from "../../src/model/profile.ts";
import { workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { hasEtcd, startEtcd } from "../support/etcd.ts";
import { builtProgram, runPlugin } from "../support/run-plugin.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const LABEL = identity.labelPrefix;

interface Site {
  readonly settings: Parameters<typeof openDatastore>[0];
  readonly env: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

async function embedded(): Promise<Site> {
  const directory = temporaryDirectory("policy-explain");
  const path = join(directory.path, "store.db");
  return {
    settings: { kind: "embedded", path },
    env: { DATASTORE_TYPE: "embedded", DATASTORE_PATH: path },
    stop: async () => directory.remove(),
  };
}

async function etcd(): Promise<Site> {
  const { endpoints, stop } = await startEtcd();
  return {
    settings: { kind: "etcd", source: { kind: "endpoints", endpoints } },
    env: { ETCD_ENDPOINTS: endpoints.join(",") },
    stop,
  };
}

function pod(name: string, address: string) {
  const labels = { app: name, [`${LABEL}namespace`]: "default", [`${LABEL}orchestrator`]: "k8s" };
  const metadata = { name: `node--1-k8s-${name}-eth0`, namespace: "default", labels };
  const spec = {
    ...{ orchestrator: "k8s", node: "node-1", pod: name, endpoint: "eth0", containerID: name },
    ...{ ipNetworks: [`${address}/32`], profiles: ["kns.default"], interfaceName: `x${name}` },
  };
  const value = workloadEndpoint.write(workloadEndpoint.make(metadata, spec));
  return { kind: "put", key: ENDPOINT.key(metadata), value } as const;
}

for (const [kind, missing, start] of [
  ["embedded", undefined, embedded],
  ["etcd", hasEtcd ? undefined : "no etcd", etcd],
] as const) {
  describe.skipIf(missing !== undefined)(`policy explain on ${kind}${missing ? ` (skipped: ${missing})` : ""}`, () => {
    let site: Site;
    beforeAll(async () => {
      site = await start();
      const store = await openDatastore(site.settings);
      const allow = { ingress: [{ action: "Allow" as const }], egress: [{ action: "Allow" as const }] };
      const policy = networkPolicy.make(
        { name: "web", namespace: "default" },
        {
          tier: "default",
          selector: "app == 'web'",
          ingress: [
            { action: "Allow", protocol: "TCP", source: { selector: "app == 'client'" }, destination: { ports: [80] } },
          ],
        },
      );
      await store.commit([
        {
          kind: "put",
          key: PROFILE.key({ name: "kns.default" }),
          value: profile.write(profile.make({ name: "kns.default" }, allow)),
        },
        pod("client", "10.0.0.1"),
        pod("web", "10.0.0.2"),
        { kind: "put", key: NETWORK_POLICY.key(policy.metadata), value: networkPolicy.write(policy) },
      ]);
      await store.close();
    });
    afterAll(() => site.stop());

    const explain = (words: string) =>
      runPlugin(builtProgram(identity.adminTool), { args: ["policy", "explain", ...words.split(" ")], env: site.env });

    test("names the rule that allows a connection", async () => {
      const { exitCode, stdout, stderr } = await explain("--from default/client --to default/web --port 80");

      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
      expect(stdout).toContain("Verdict:    allowed\n");
      expect(stdout).toContain('NetworkPolicy "default/web", ingress rule 1 (spec.ingress[0]): allow TCP from');
    });

    test("says that no rule matches, and suggests the workload that was meant", async () => {
      expect((await explain("--from default/client --to default/web --port 443")).stdout).toContain(
        'no rule of the policy that applies in tier "default" matches, so the tier denies it',
      );
      expect((await explain("--from default/clients --to default/web --port 443")).stderr).toContain(
        'did you mean "default/client"?',
      );
    });
  });
}
