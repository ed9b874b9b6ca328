/**
 * The chart with real Helm: clean, and installed, changed and removed on a real API server. The orchestrator's part (the
 * Job of the hook) and the operator's part (defaults, finalizer) are played by the test, with the operator's own code.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { SYSTEM_CLOCK } from "../../src/datastore/replica/clock.ts";
import { identity } from "../../src/identity.ts";
import type { KubeClient } from "../../src/kube/api.ts";
import { openKubeClient } from "../../src/kube/client.ts";
import { NETWORK_FIELD } from "../../src/model/installation/names.ts";
import { prepareInstallation, removeFinalizer } from "../../src/operator/installation-writes.ts";
import { deleteInstallations } from "../../src/operator/request-deletion.ts";
import { completeInstallation } from "../../src/release/installation/complete.ts";
import type { LiveObject } from "../../src/release/live-object.ts";
import { HELM_VERSIONS, type Helm, type HelmVersion, helmProblem, makeHelm } from "../support/helm.ts";
import { meansWith } from "../support/imitated-api.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const CHART = join(import.meta.dir, "../../deploy/chart");
const { operator, product } = identity;
const UNINSTALL = `${operator}-uninstall`;
const NAMESPACE = `--namespace=${operator}`;
const FACTS = { version: "v0.0.0", namespace: identity.systemNamespace, pools: [], platformPodCidrs: [] };
const noServer = apiServerProblem();

const folder = temporaryDirectory("chart");
let server: ApiServer | undefined;
let client: KubeClient | undefined;

beforeAll(async () => {
  if (noServer !== undefined || HELM_VERSIONS.every((version) => helmProblem(version) !== undefined)) return;
  server = await startApiServer();
  client = await openKubeClient({ kubeconfigs: [server.adminKubeconfig] }, meansWith());
}, 120_000);
afterAll(async () => {
  await client?.close();
  await server?.stop();
  folder.remove();
});

function cluster(): { readonly server: ApiServer; readonly client: KubeClient } {
  if (server === undefined || client === undefined) throw new Error("there is no API server");
  return { server, client };
}

const means = () => ({ client: cluster().client, requireLeading: () => {} });

/** As the operator completes it. */
async function completeDefaults(): Promise<void> {
  const live = await cluster().server.get<LiveObject>("installation", "default");
  const completed = completeInstallation({ default: live }, FACTS);
  if (!completed.ok) throw new Error(JSON.stringify(completed.problems));
  await prepareInstallation(means(), live, completed.defaults);
}

async function networkOfDefault(): Promise<unknown> {
  const { spec } = await cluster().server.get<{ spec: Readonly<Record<string, unknown>> }>("installation", "default");
  return spec[NETWORK_FIELD];
}

/** What the Job of the hook runs, and what the orchestrator and the operator do meanwhile. */
async function playHook(): Promise<void> {
  const { server, client } = cluster();
  const job = ["job", UNINSTALL, NAMESPACE];
  await pollUntil(
    () =>
      server.get(...job).then(
        () => true,
        () => false,
      ),
    "the Job of the hook",
  );
  const { kubeconfig } = await server.serviceAccount({ name: UNINSTALL, namespace: operator });
  const account = await openKubeClient({ kubeconfigs: [kubeconfig] }, meansWith());
  const signal = AbortSignal.timeout(20_000);
  const deleted = deleteInstallations({ client: account, wait: SYSTEM_CLOCK.wait, signal, log: () => {} });
  const isDeleting = async () =>
    (await server.get<LiveObject>("installation", "default")).metadata["deletionTimestamp"] !== undefined;
  await pollUntil(isDeleting, "the deletion of the Installation");
  await removeFinalizer({ client, requireLeading: () => {} }, await server.get("installation", "default"));
  expect(await deleted).toBe(true);
  await account.close();
  const now = new Date().toISOString();
  const condition = (type: string) => ({ type, status: "True", lastTransitionTime: now });
  const conditions = [condition("SuccessCriteriaMet"), condition("Complete")];
  const status = { startTime: now, completionTime: now, succeeded: 1, conditions };
  await server.kubectl([
    "patch",
    ...job,
    "--subresource=status",
    "--type=merge",
    `--patch=${JSON.stringify({ status })}`,
  ]);
}

async function namesLeft(): Promise<readonly string[]> {
  const kinds =
    "deployments,serviceaccounts,secrets,configmaps,roles,rolebindings,clusterroles,clusterrolebindings,jobs";
  const names = await cluster().server.kubectl(["get", kinds, NAMESPACE, "--output=name"]);
  return names.split("\n").filter((name) => name.includes(product) || name.endsWith("/registry"));
}

function inAnyOrder(words: readonly string[]): RegExp {
  return new RegExp(words.map((word) => `(?=[\\s\\S]*${word})`).join(""));
}

/** Helm prints notes only for a server: a chart that has them as an object. */
async function chartOfNotes(name: string): Promise<string> {
  const directory = join(folder.path, `notes-${name}`);
  const files = {
    "Chart.yaml": await Bun.file(join(CHART, "Chart.yaml")).text(),
    "values.yaml": "installation: {enabled: true}\n",
    "notes.txt": await Bun.file(join(CHART, "templates/NOTES.txt")).text(),
    "templates/notes.yaml": 'text: |\n{{ tpl (.Files.Get "notes.txt") . | indent 2 }}\n',
  };
  await Promise.all(Object.entries(files).map(([file, text]) => Bun.write(join(directory, file), text)));
  return directory;
}

/** Helm with another Kubernetes than the tests': it knows none without a server. */
const OFFLINE = [NAMESPACE, "--kube-version=1.37.0"];

const INSTALLED = proofSize<readonly HelmVersion[]>({ everyDay: ["helm4"], soak: HELM_VERSIONS });

for (const version of HELM_VERSIONS) describeHelm(version);

function describeHelm(version: HelmVersion): void {
  const testHelm = testNeeding(helmProblem(version));
  const testServer = testNeeding(helmProblem(version), noServer);

  const helm: Helm = (...args) => makeHelm(version, folder.path, server?.adminKubeconfig)(...args);

  describe(`the chart with ${version}`, () => {
    testHelm("is clean", async () => {
      const report = await helm("lint", CHART, "--strict", ...OFFLINE);

      expect(report).toContain("1 chart(s) linted, 0 chart(s) failed");
      expect(report).not.toMatch(/\[(WARNING|ERROR)\]/);
    });

    testHelm("takes the image from the registry of the Installation, and its Secrets", async () => {
      const sets = [
        "installation.registry=example.org:5000/mirror",
        "installation.imagePath=network",
        "kubernetesServiceEndpoint.host=192.0.2.1",
        "imagePullSecrets.registry=content",
      ];
      const text = await helm("template", "net", CHART, ...OFFLINE, ...sets.map((value) => `--set=${value}`));

      expect(text).toContain(`image: "example.org:5000/mirror/network/${product}:v`);
      expect(text).toContain('KUBERNETES_SERVICE_HOST: "192.0.2.1"');
      expect(text).toContain(`.dockerconfigjson: ${btoa("content")}`);
      expect(text).toMatch(/kind: Installation[\s\S]*imagePullSecrets:\n {2}- name: registry/);
    });

    testHelm(
      "refuses another namespace, and values that the operator would refuse",
      async () => {
        const template = (...args: readonly string[]) =>
          helm("template", "net", CHART, "--kube-version=1.37.0", ...args);

        await expect(template()).rejects.toThrow(`--namespace ${operator} --create-namespace`);
        const wrong = [
          `${NETWORK_FIELD}.mtuu=1400`,
          `${NETWORK_FIELD}.linuxDataplane=BPF`,
          "typhaMetricsPort=9093",
          "controlPlaneReplicas=0",
          "console.hosts={https://console.example.org}",
        ];
        const refusal = template(NAMESPACE, ...wrong.map((value) => `--set=installation.${value}`));
        const named = ["mtuu", "linuxDataplane", "typhaMetricsPort", "controlPlaneReplicas", "hosts"];
        await expect(refusal).rejects.toThrow(
          expect.objectContaining({ message: expect.stringMatching(inAnyOrder(named)) }),
        );
      },
      60_000,
    );

    testHelm("names the definitions that fit the API server in its notes", async () => {
      const notes = async (kubeVersion: string) =>
        helm("template", "net", await chartOfNotes(version), NAMESPACE, `--kube-version=${kubeVersion}`);

      expect(await notes("v1.31.4+k3s1")).toContain("server-side --force-conflicts -f older/operator-crds.yaml\n");
      expect(await notes("v1.32.0")).toContain("server-side --force-conflicts -f crds/\n");
      expect(await notes("v1.32.0")).not.toContain("older/");
    });

    if (!INSTALLED.includes(version)) return;
    testServer(
      "installs, keeps its values and the defaults of the operator in an upgrade, and removes",
      async () => {
        const network = (value: string) => `--set=installation.${NETWORK_FIELD}.${value}`;
        const settings = [
          network("mtu=1400"),
          network("ipPools[0].cidr=10.1.0.0/16"),
          "--set=installation.console.mode=Enabled",
          "--set=installation.console.hosts={console.example.org}",
          '--set-json=imagePullSecrets={"registry":{"auths":{}}}',
        ];
        await helm("install", "net", CHART, NAMESPACE, "--create-namespace", ...settings);
        expect(await networkOfDefault()).toEqual({ mtu: 1400, ipPools: [{ cidr: "10.1.0.0/16" }] });
        await completeDefaults();

        await helm(
          "upgrade",
          "net",
          CHART,
          NAMESPACE,
          "--reuse-values",
          network("linuxPolicySetupTimeoutSeconds=10"),
          network("hostPorts=Disabled"),
        );
        await completeDefaults();
        expect(await networkOfDefault()).toMatchObject({
          mtu: 1400,
          linuxPolicySetupTimeoutSeconds: 10,
          hostPorts: "Disabled",
          bgp: "Enabled",
          ipPools: [{ cidr: "10.1.0.0/16", name: "default-ipv4-ippool", encapsulation: "VXLANCrossSubnet" }],
        });
        const { spec } = await cluster().server.get<{ readonly spec: object }>("installation", "default");
        expect(spec).toMatchObject({ console: { mode: "Enabled", hosts: ["console.example.org"] } });
        expect(await namesLeft()).toContain(`deployment.apps/${operator}`);

        await Promise.all([helm("uninstall", "net", NAMESPACE), playHook()]);
        expect(await namesLeft()).toEqual([]);
        const crds = await cluster().server.kubectl(["get", "crds", "--output=name"]);
        expect(crds).toContain(`installations.${identity.operatorApiGroup}`);
      },
      120_000,
    );
  });
}
