/**
 * An installation of an earlier release by the chart and by the operator's manifest is upgraded on a real API server with the
 * real Helm: before v3.23 (rule 4), after it (rule 5), and without Helm (rule 6). Kubelets are imitated; the new operator runs.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { API_VERSION, apiVersionOf, identity, OPERATOR_API } from "../../src/identity.ts";
import type { Fields } from "../../src/kube/objects.ts";
import { readServerVersion } from "../../src/kube/server-version.ts";
import { podLabels } from "../../src/release/workloads/names.ts";
import type { ChartRelease, Facts, InstallMethod } from "../../src/upgrade/engine/facts.ts";
import type { Helm as StepHelm } from "../../src/upgrade/engine/step.ts";
import { packRelease, unpackRelease } from "../../src/upgrade/helm-releases.ts";
import { chartStep } from "../../src/upgrade/steps/chart/step.ts";
import { definitionsStep } from "../../src/upgrade/steps/definitions/step.ts";
import { operatorStep } from "../../src/upgrade/steps/operator/step.ts";
import { releaseOwnershipStep } from "../../src/upgrade/steps/release-ownership/step.ts";
import { releaseSecretsStep } from "../../src/upgrade/steps/release-secrets/step.ts";
import { VERSION } from "../../src/version.ts";
import { partIfBuilt } from "../parts/build.ts";
import { HELM_VERSIONS, type HelmVersion, helmProblem, makeHelm } from "../support/helm.ts";
import { apiServerProblem, type EarlierRelease } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";
import { writeFormerChart } from "../support/older-cluster/chart.ts";
import { type OlderCluster, startOlderCluster } from "../support/older-cluster/older-cluster.ts";
import {
  createFormerComponents,
  createFormerOperatorDefinitions,
  formerInstallationSpec,
  formerOperator,
} from "../support/older-cluster/operator.ts";
import { type Json, startOperatorOn } from "../support/operator-site.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { stepRun } from "./step-run.ts";

setDefaultTimeout(90_000);

const { operator: OPERATOR, systemNamespace: SYSTEM, product } = identity;
const INSTALLATION = `/apis/${apiVersionOf(OPERATOR_API)}/installations/default`;
const DEPLOYMENT = `/apis/apps/v1/namespaces/${OPERATOR}/deployments/${OPERATOR}`;
const NODE = `/apis/apps/v1/namespaces/${SYSTEM}/daemonsets/${identity.nodeAgent}`;
const SECRETS = `/api/v1/namespaces/${OPERATOR}/secrets`;
const CHART_VERSION = VERSION.replace(/^v/, "");
const POOL = "10.244.0.0/16";
const POOLS = `/apis/${API_VERSION}/ippools`;
const INFORMATION = `/apis/${API_VERSION}/clusterinformations`;

const POD_SECURITY_POLICY = `/apis/policy/v1beta1/podsecuritypolicies/${OPERATOR}`;

const FACTS: Omit<Facts, "method"> = {
  datastore: "kubernetes",
  storage: "current",
  version: "v3.22.5",
  target: VERSION,
  parts: [],
  orchestratorVersion: "unknown",
  nodes: ["one", "two"],
  namespace: SYSTEM,
  hasAggregatedApi: false,
  unfinished: [],
  hasApplicationLayerPolicy: false,
  hostEndpoints: [],
  hasUpgradePolicy: false,
  ownedObjects: [],
};

/** What the user gave the chart of v3.22. */
const VALUES = {
  installation: { enabled: true, ...formerInstallationSpec(POOL) },
  apiServer: { enabled: true },
  nodeSelector: { "kubernetes.io/os": "linux" },
  [`${product}Operator`]: { registry: "quay.example.org" },
};

interface Combination {
  readonly version: HelmVersion;
  /** Of the orchestrator; absent: today's. */
  readonly orchestrator?: EarlierRelease;
}

const WITH = proofSize<readonly Combination[]>({
  everyDay: [{ version: "helm3" }],
  soak: [...HELM_VERSIONS.map((version) => ({ version })), { version: "helm3", orchestrator: "1.24" }],
});

for (const { version, orchestrator } of WITH) {
  const problem = apiServerProblem(orchestrator) ?? helmProblem(version);
  const testCluster = testNeeding(problem);
  const on = orchestrator === undefined ? "" : ` on Kubernetes ${orchestrator}`;
  const hasPodSecurityPolicy = orchestrator === "1.24";

  describe(`a chart of an earlier release, with ${version}${on}`, () => {
    const folder = temporaryDirectory("former-chart");
    let cluster: OlderCluster;
    let facts = FACTS;
    const factsOf = (method: InstallMethod): Facts => ({ ...facts, method });
    beforeAll(async () => {
      if (problem !== undefined) return;
      cluster = await startOlderCluster({
        nodes: ["one", "two"],
        definitions: "none",
        ...(orchestrator === undefined ? {} : { release: orchestrator }),
      });
      facts = { ...FACTS, orchestratorVersion: await readServerVersion(cluster.objects) };
      await createFormerOperatorDefinitions(cluster.objects);
    });
    afterAll(async () => {
      await cluster?.[Symbol.asyncDispose]();
      folder.remove();
    });

    const helm = () => makeHelm(version, folder.path, cluster.adminKubeconfig);
    const read = (path: string): Promise<Json> => cluster.objects.read(path);
    const imagesOfNodes = async () => {
      const pods = (await cluster.objects.list(`/api/v1/namespaces/${SYSTEM}/pods`)) as Json[];
      const own = pods.filter(({ metadata }) => metadata.ownerReferences?.[0]?.kind === "DaemonSet");
      return own.map(({ spec }) => spec.containers[0].image).sort();
    };
    const newestRelease = async (namespace: string): Promise<Json> => {
      const secrets = (await cluster.objects.list(`/api/v1/namespaces/${namespace}/secrets`, {
        labelSelector: "owner=helm",
      })) as Json[];
      const records = secrets.map(({ data }) => unpackRelease(data.release) as Json);
      return records.sort((one, other) => other.version - one.version)[0];
    };
    const untilRuns = async () => {
      const runs = async () => (await read(DEPLOYMENT))?.status?.availableReplicas === 1;
      await pollUntil(runs, "the operator of the earlier release");
    };

    testCluster("is laid out by the chart of v3.22, in another namespace than the operator's", async () => {
      const chart = writeFormerChart(join(folder.path, "v3.22"), "v3.22.5", { hasPodSecurityPolicy });
      const values = join(folder.path, "values.json");
      await Bun.write(values, JSON.stringify(VALUES));
      await helm()("install", "net", chart, "--namespace=default", `--values=${values}`);
      const installation = await read(INSTALLATION);
      const finalizers = [`${OPERATOR_API.group}/installation-controller`];
      await cluster.objects.patch(INSTALLATION, { metadata: { finalizers } });
      await createFormerComponents((object) => cluster.apply(JSON.stringify(object)), "v3.22.5", installation);
      await untilRuns();
      await pollUntil(async () => (await imagesOfNodes()).length === 2, "the agents of the earlier release");
    });

    testCluster("moves to the operator's namespace with the user's values (rule 4), and back", async () => {
      const run = stepRun({
        objects: cluster.objects,
        facts: factsOf(chartFacts("default", "v3.22.5")),
        helm: stepHelm(version, folder.path, cluster),
      });
      const node = await read(NODE);
      const before = await read(DEPLOYMENT);

      const ownership = await run.carryOut(releaseOwnershipStep);
      await run.carryOut(definitionsStep);
      expect(await run.plan(definitionsStep)).toBeUndefined();
      const policy = await read(POD_SECURITY_POLICY);
      if (hasPodSecurityPolicy) {
        expect(ownership.changes.map(({ what }) => what)).toContain(`PodSecurityPolicy ${OPERATOR}`);
        expect(policy.metadata.annotations["meta.helm.sh/release-namespace"]).toBe(OPERATOR);
      } else {
        expect(policy).toBeUndefined();
        expect(ownership.notes).toContain(`PodSecurityPolicy ${OPERATOR}: there is none; skipped`);
      }
      const marked = await read(INSTALLATION);
      expect(marked.metadata.annotations["meta.helm.sh/release-namespace"]).toBe(OPERATOR);
      const plan = await run.carryOut(chartStep);
      expect(plan.obstacles).toEqual([]);
      expect(plan.notes.join("\n")).toMatch(
        /Value installation\.typhaMetricsPort is dropped[\s\S]*Value apiServer is dropped/,
      );

      const release = await newestRelease(OPERATOR);
      expect([release.chart.metadata.version, release.info.status]).toEqual([CHART_VERSION, "deployed"]);
      const network = `${product}Network`;
      expect(release.config.installation[network].mtu).toBe(1430);
      const installed = await read(INSTALLATION);
      expect([installed.spec[network].mtu, installed.spec.typhaMetricsPort]).toEqual([1430, undefined]);
      expect(installed.metadata.finalizers).toBeUndefined();
      expect(
        (await read(`/apis/apps/v1/namespaces/${SYSTEM}/deployments/${product}-kube-controllers`)).spec.replicas,
      ).toBe(0);

      // As while the storage moves.
      await cluster.objects.create(INFORMATION, {
        apiVersion: API_VERSION,
        kind: "ClusterInformation",
        metadata: { name: "default" },
        spec: { datastoreReady: false },
      });
      const operator = await startOperatorOn(cluster);
      try {
        await pollUntil(
          async () => (await imagesOfNodes()).every((image) => image.endsWith(VERSION)),
          "the new agents",
          30_000,
        ).catch(async (error) => {
          throw new Error(`${error.message}: ${await imagesOfNodes()}\n${operator.log.join("\n")}`);
        });
        expect(await cluster.objects.list(POOLS)).toEqual([]);
        await cluster.objects.patch(`${INFORMATION}/default`, { spec: { datastoreReady: true } });
        await pollUntil(async () => (await cluster.objects.list(POOLS)).length === 1, "the pool after the unlock");
        const renewed = await read(NODE);
        // The same DaemonSet with the same selector, and nothing of the earlier release in its pods.
        expect([renewed.metadata.uid, renewed.spec.selector]).toEqual([node.metadata.uid, node.spec.selector]);
        const { initContainers, containers, volumes } = renewed.spec.template.spec;
        expect(initContainers.map(({ name }: Json) => name)).toEqual(["install"]);
        expect(containers[0].env.map(({ name }: Json) => name)).not.toContain("FELIX_HEALTHENABLED");
        expect(containers[0].lifecycle).toBeUndefined();
        expect(volumes.map(({ name }: Json) => name)).not.toContain("cni-bin-dir");

        const secrets = await run.carryOut(releaseSecretsStep);
        expect(secrets.changes.map(({ what }) => what)).toEqual(["Secret default/sh.helm.release.v1.net.v1"]);
        expect(await newestRelease("default")).toBeUndefined();
        expect(await read(`/api/v1/namespaces/${OPERATOR}`)).toBeDefined();
        expect((await read(POD_SECURITY_POLICY)) !== undefined).toBe(hasPodSecurityPolicy);
        for (const step of [definitionsStep, releaseOwnershipStep, chartStep, releaseSecretsStep]) {
          expect(await step.remaining(run.site, plan)).toEqual([]);
        }
        await run.rollback(releaseSecretsStep, secrets);
      } finally {
        await operator.stop();
      }

      await run.rollback(chartStep, plan);
      await run.rollback(releaseOwnershipStep, ownership);
      const after = await read(DEPLOYMENT);
      expect(after.spec.template).toEqual(before.spec.template);
      expect((await newestRelease("default")).chart.metadata.version).toBe("v3.22.5");
      expect(await newestRelease(OPERATOR)).toBeUndefined();
      for (const path of [INSTALLATION, ...(hasPodSecurityPolicy ? [POD_SECURITY_POLICY] : [])]) {
        expect((await read(path)).metadata.annotations["meta.helm.sh/release-namespace"]).toBe("default");
      }
      await untilRuns();
    });

    testCluster(
      "is upgraded in its namespace (rule 5), after what Helm would stumble over is taken out of its record",
      async () => {
        await moveRelease(cluster);
        const withoutHelm = stepRun({
          objects: cluster.objects,
          facts: factsOf(chartFacts(OPERATOR, "v3.26.4")),
        });
        const plan = await withoutHelm.plan(chartStep);
        expect(plan?.notes.join("\n")).toMatch(
          hasPodSecurityPolicy
            ? /PodSecurityPolicy.*pods may be permitted by it[\s\S]*Namespace/
            : /PodSecurityPolicy.*does not serve[\s\S]*Namespace/,
        );

        // Another Helm has not ended.
        await setStatus(cluster, "pending-upgrade");
        const pending = await withoutHelm.plan(chartStep);
        expect(pending?.obstacles[0]?.message).toContain(
          `release "net" in namespace "${OPERATOR}" is in state pending-upgrade`,
        );
        await expect(withoutHelm.carryOut(chartStep)).rejects.toThrow("pending-upgrade");
        await setStatus(cluster, "deployed");

        const waiting = await withoutHelm.carryOut(chartStep).catch((error) => error);
        expect(waiting.message).toContain("Waiting for the chart");
        const command = /run "helm (.*?)"/.exec(waiting.details)?.[1] ?? "";
        await helm()(...command.split(" "), ...(version === "helm4" ? ["--force-conflicts"] : []));
        rmSync(dirname(command.split(" ").at(-1) ?? ""), { recursive: true });
        if (plan !== undefined) await chartStep.act(withoutHelm.site, plan);
        expect(await withoutHelm.plan(chartStep)).toBeUndefined();
        expect((await newestRelease(OPERATOR)).chart.metadata.version).toBe(CHART_VERSION);
        const { spec } = await read(DEPLOYMENT);
        expect(spec.selector.matchLabels).toEqual(podLabels(OPERATOR));
        expect(await read(`/api/v1/namespaces/${OPERATOR}`)).toBeDefined();
        expect(await read(`/apis/${apiVersionOf(OPERATOR_API)}/apiservers/default`)).toBeDefined();
      },
    );

    testCluster("is upgraded by the manifest of the operator (rule 6), whoever wrote its fields before", async () => {
      await cluster.kubectl(["delete", "secrets", `--namespace=${OPERATOR}`, "--selector=owner=helm"]);
      await cluster.objects.remove(DEPLOYMENT, { propagationPolicy: "Foreground" });
      await pollUntil(async () => (await read(DEPLOYMENT)) === undefined, "the operator to be gone");
      const former = formerOperator("v3.28.2");
      const manifest = former.map((object) => JSON.stringify(withExtraRule(object))).join("\n---\n");
      await cluster.kubectl(["apply", "--filename=-"], manifest);
      await untilRuns();
      const run = stepRun({ objects: cluster.objects, facts: factsOf({ kind: "operator" }) });

      const plan = await run.carryOut(operatorStep);
      const conflicts = plan.changes.flatMap((change) => change.conflicts ?? []);
      expect(conflicts.map(({ manager }) => manager)).toContain("kubectl-client-side-apply");
      const account = await read(`/api/v1/namespaces/${OPERATOR}/serviceaccounts/${OPERATOR}`);
      expect(account.metadata.annotations?.["kubectl.kubernetes.io/last-applied-configuration"]).toBeUndefined();
      expect(account.metadata.labels?.["former"]).toBeUndefined();
      expect(await run.plan(operatorStep)).toBeUndefined();
      await run.rollback(operatorStep, plan);
      expect((await read(DEPLOYMENT)).spec.selector.matchLabels).toEqual({ name: OPERATOR });
    });
  });
}

/** A label of the former manifest, which the new one does not have. */
function withExtraRule(object: Fields): Fields {
  if (object["kind"] !== "ServiceAccount") return object;
  return { ...object, metadata: { ...Object(object["metadata"]), labels: { former: "true" } } };
}

function chartFacts(namespace: string, chartVersion: string): InstallMethod {
  const release: ChartRelease = { name: "net", namespace, revision: 1, chartVersion, status: "deployed" };
  return { kind: "chart", release };
}

/** As `vendorctl` runs it. */
function stepHelm(version: HelmVersion, home: string, { adminKubeconfig }: OlderCluster): StepHelm {
  const built = partIfBuilt(version);
  if ("missing" in built) throw new Error(built.missing);
  return async (args, stdin = "") => {
    const child = Bun.spawn([built.path, ...args, "--kubeconfig", adminKubeconfig], {
      stdin: Buffer.from(stdin),
      stdout: "pipe",
      stderr: "pipe",
      env: { HOME: home, HELM_CACHE_HOME: home, HELM_CONFIG_HOME: home, HELM_DATA_HOME: home },
    });
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    return { code: await child.exited, stdout, stderr };
  };
}

const RELEASE = "sh.helm.release.v1.net.v1";
const POLICY = `---\napiVersion: policy/v1beta1\nkind: PodSecurityPolicy\nmetadata:\n  name: ${OPERATOR}\nspec:\n  privileged: true\n`;

/** The same release as a chart of v3.26 has it: in the operator's namespace, with a kind that the API does not serve any more. */
async function moveRelease({ objects, kubectl }: OlderCluster): Promise<void> {
  const from = `/api/v1/namespaces/default/secrets/${RELEASE}`;
  const secret: Json = await objects.read(from);
  const record: Json = unpackRelease(secret.data.release);
  const chart = { ...record.chart, metadata: { ...record.chart.metadata, version: "v3.26.4" } };
  const release = packRelease({ ...record, chart, namespace: OPERATOR, manifest: `${POLICY}${record.manifest}` });
  const { labels } = secret.metadata;
  const metadata = { name: RELEASE, namespace: OPERATOR, labels };
  await objects.create(SECRETS, { apiVersion: "v1", kind: "Secret", type: secret.type, metadata, data: { release } });
  await objects.remove(from);
  const marks = { [`meta.helm.sh/release-namespace`]: OPERATOR };
  const owned = [
    `serviceaccount/${OPERATOR}`,
    `clusterrole/${OPERATOR}`,
    `clusterrolebinding/${OPERATOR}`,
    `deployment/${OPERATOR}`,
    "installation/default",
    "apiserver/default",
  ];
  const [mark = ""] = Object.entries(marks).map((pair) => pair.join("="));
  for (const name of owned) await kubectl(["annotate", "--overwrite", name, mark, `--namespace=${OPERATOR}`]);
}

async function setStatus({ objects }: OlderCluster, status: string): Promise<void> {
  const path = `${SECRETS}/${RELEASE}`;
  const secret: Json = await objects.read(path);
  const record: Json = unpackRelease(secret.data.release);
  const release = packRelease({ ...record, info: { ...record.info, status } });
  await objects.patch(path, { metadata: { labels: { status } }, data: { release } });
}
