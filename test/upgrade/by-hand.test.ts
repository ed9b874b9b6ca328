/**
 * The procedure of the specification, typed by hand as docs/upgrade.md has it: real kubectl, Helm and curl, a real API
 * server, and the files of `make release` behind a server of the test. Kubelets are imitated.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { writeChecksums } from "../../scripts/release/checksums.ts";
import { manifestBase } from "../../scripts/release/manifest-base.ts";
import { writeReleaseFiles } from "../../scripts/release/manifests-and-chart.ts";
import { API_VERSION, apiVersionOf, FORMER_API, identity, OPERATOR_API } from "../../src/identity.ts";
import { VERSION } from "../../src/version.ts";
import { part } from "../parts/build.ts";
import { commandsOfPage } from "../support/docs-page.ts";
import { helmProblem } from "../support/helm.ts";
import { apiServerProblem, kubeProgram } from "../support/kube-apiserver.ts";
import { program, testNeeding } from "../support/needs.ts";
import { writeFormerChart } from "../support/older-cluster/chart.ts";
import { layOutManifest } from "../support/older-cluster/manifest.ts";
import { type OlderCluster, startOlderCluster } from "../support/older-cluster/older-cluster.ts";
import { createFormerOperatorDefinitions } from "../support/older-cluster/operator.ts";
import type { Json } from "../support/operator-site.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

setDefaultTimeout(120_000);

const { operator: OPERATOR, product, nodeAgent, adminTool } = identity;
const PREFIX = "By hand: ";
const OWN_API = `/apis/${API_VERSION}`;
const INSTALLATION = `/apis/${apiVersionOf(OPERATOR_API)}/installations/default`;
const DEPLOYMENT = `/apis/apps/v1/namespaces/${OPERATOR}/deployments/${OPERATOR}`;
const AGENT = `/apis/apps/v1/namespaces/kube-system/daemonsets/${nodeAgent}`;
const PAST = 1_700_000_000;

const problem = apiServerProblem() ?? helmProblem("helm3") ?? program("curl") ?? program("tar");
const testCluster = testNeeding(problem);
const commands = new Map([...commandsOfPage("upgrade.md")].filter(([title]) => title.startsWith(PREFIX)));
const typed = new Set([`${PREFIX}where the files are`]);

const folder = temporaryDirectory("by-hand");
const requested: string[] = [];
let cluster: OlderCluster;
let site: ReturnType<typeof Bun.serve>;

beforeAll(async () => {
  if (problem !== undefined) return;
  const release = join(folder.path, "release", VERSION);
  await writeReleaseFiles(release, PAST);
  const tool = join(release, "bin/linux-amd64");
  mkdirSync(tool, { recursive: true });
  copyFileSync(builtProgram(product), join(tool, adminTool));
  writeChecksums(release);
  site = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch({ url }) {
      const { pathname } = new URL(url);
      requested.push(pathname.replace(`/${VERSION}/`, ""));
      return new Response(Bun.file(join(folder.path, "release", pathname)));
    },
    error: () => new Response("", { status: 404 }),
  });

  cluster = await startOlderCluster({ nodes: ["one", "two"], definitions: "none" });
  await createFormerOperatorDefinitions(cluster.objects);
  for (const name of ["bin", "home/.kube"]) mkdirSync(join(folder.path, name), { recursive: true });
  const helm = await part("helm3");
  if ("missing" in helm) throw new Error(helm.missing);
  symlinkSync(helm.path, join(folder.path, "bin/helm"));
  symlinkSync(kubeProgram("kubectl"), join(folder.path, "bin/kubectl"));
  copyFileSync(cluster.adminKubeconfig, join(folder.path, "home/.kube/config"));
});
afterAll(async () => {
  await site?.stop(true);
  await cluster?.[Symbol.asyncDispose]();
  folder.remove();
});

/** Types the commands of a section of the page; all must succeed. Returns what they print. */
async function type(section: string, edit = (script: string) => script): Promise<string> {
  const title = PREFIX + section;
  typed.add(title);
  return bash(edit(commands.get(title) ?? `echo 'no section "${title}"'; false`));
}

/** What the commands of a section write, or try to, whether they succeed or not. */
async function writesOf(section: string): Promise<readonly string[]> {
  const audit = cluster.startAudit();
  await type(section).catch(() => {});
  const isRead = /^(get|list|watch)$/;
  // The imitated kubelets and the controller manager write all the time.
  const byUser = audit
    .requests()
    .filter(({ user, verb, uri }) => user === "admin" && !isRead.test(verb) && !isOfKubelet(uri));
  return byUser.map(({ verb, uri }) => `${verb} ${uri}`);
}

const isOfKubelet = (uri: string) => /\/(pods|nodes|leases)\b/.test(uri);

async function bash(script: string): Promise<string> {
  const child = Bun.spawn(["bash", "-eo", "pipefail", "-c", `exec 2>&1\n${script}`], {
    cwd: folder.path,
    stdin: "ignore",
    stdout: "pipe",
    env: {
      PATH: `${join(folder.path, "bin")}:${process.env["PATH"]}`,
      HOME: join(folder.path, "home"),
      MANIFEST_BASE: `http://127.0.0.1:${site.port}/${VERSION}`,
    },
  });
  const [output, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  if (code !== 0) throw new Error(`${script}\nended with ${code}: ${output}`);
  return output;
}

const withoutSearch = (script: string) => script.slice(script.indexOf("kubectl --namespace shop patch"));
const read = (path: string): Promise<Json> => cluster.objects.read(path);
const imageOf = ({ spec }: Json): string => spec.template.spec.containers[0].image;

/** A manifest of the release as an earlier build had it, applied as the page says. */
async function applyBuild(name: string, edit = (text: string) => text): Promise<void> {
  const text = await Bun.file(join(folder.path, "release", VERSION, name)).text();
  await Bun.write(join(folder.path, "build.yaml"), edit(text.replaceAll(`:${VERSION}`, ":v3.29.0-before")));
  await bash("kubectl apply --server-side --force-conflicts --filename build.yaml");
  expect(imageOf(await read(AGENT))).toEndWith(":v3.29.0-before");
}

test("the page names the address of this release", () => {
  expect(commands.get(`${PREFIX}where the files are`)).toBe(`MANIFEST_BASE=${manifestBase(identity, VERSION)}\n`);
});

describe("typed by hand", () => {
  testCluster("a chart from before v3.23 moves to the operator's namespace, and its records go (rule 4)", async () => {
    const chart = writeFormerChart(join(folder.path, "v3.22"), "v3.22.5");
    const pools = `installation.${product}Network.ipPools[0].cidr=10.244.0.0/16`;
    await bash(`helm install net ${chart} --namespace default --set '${pools}'`);

    const output = await type("a chart from before v3.23");

    expect(output).toContain("(dry run)");
    const { metadata, spec } = await read(INSTALLATION);
    expect(metadata.annotations["meta.helm.sh/release-namespace"]).toBe(OPERATOR);
    expect(spec[`${product}Network`].ipPools).toMatchObject([{ cidr: "10.244.0.0/16" }]);
    expect(imageOf(await read(DEPLOYMENT))).toEndWith(`:${VERSION}`);
    expect(await bash("helm list --all-namespaces --short --output json")).toBe('["net"]\n');
    expect(await bash(`helm list --namespace ${OPERATOR} --short`)).toBe("net\n");
    expect(await cluster.objects.list("/api/v1/namespaces/default/secrets", { labelSelector: "owner=helm" })).toEqual(
      [],
    );
  });

  testCluster("a chart in the operator's namespace is upgraded (rule 5)", async () => {
    await type("other charts");

    expect(await bash(`helm history net --namespace ${OPERATOR} --max 1`)).toMatch(/^2\s.*deployed/m);
  });

  testCluster("the operator's manifest takes what others have written (rule 6)", async () => {
    const foreign = "elsewhere/operator:v0";
    await bash(`kubectl --namespace ${OPERATOR} set image deployment/${OPERATOR} '*=${foreign}'`);
    expect(imageOf(await read(DEPLOYMENT))).toBe(foreign);

    await type("the operator's manifest");

    expect(imageOf(await read(DEPLOYMENT))).toEndWith(`:${VERSION}`);
    expect((await read(`${OWN_API}/ippools`)).kind).toBe("IPPoolList");
  });

  testCluster("a manifest is applied, its pods run, and the new tool says Cluster Version (rule 7)", async () => {
    await cluster.objects.create(`${OWN_API}/clusterinformations`, {
      apiVersion: API_VERSION,
      kind: "ClusterInformation",
      metadata: { name: "default" },
      // As the agents of all nodes write it.
      spec: { datastoreReady: true, [`${product}Version`]: VERSION },
    });

    // An earlier build of this release.
    await applyBuild("vendor.yaml");

    const output = await type("manifests");

    expect(output).toContain(`daemon set "${nodeAgent}" successfully rolled out`);
    expect(output).toMatch(new RegExp(`^${nodeAgent}-\\S+ +1/1 +Running`, "m"));
    expect(output).toMatch(/^Cluster Version: +v3\.29\.\d+$/m);
  });

  testCluster("a manifest for etcd has the endpoints that were set again (rule 8)", async () => {
    const secret = `/api/v1/namespaces/kube-system/secrets/${product}-etcd-secrets`;
    const certificates = { "etcd-ca": btoa("ca"), "etcd-cert": btoa("cert"), "etcd-key": btoa("key") };
    const edit = (text: string) => text.replace("data: {}", `data: ${JSON.stringify(certificates)}`);
    await applyBuild("vendor-etcd.yaml", edit);
    expect((await read(secret)).data).toEqual(certificates);

    await type("manifests on etcd");

    const { data } = await read(`/api/v1/namespaces/kube-system/configmaps/${product}-config`);
    expect(data).toMatchObject({
      etcd_endpoints: "https://10.0.0.1:2379",
      etcd_ca: `/etc/${product}-etcd-secrets/etcd-ca`,
      etcd_cert: `/etc/${product}-etcd-secrets/etcd-cert`,
      etcd_key: `/etc/${product}-etcd-secrets/etcd-key`,
    });
    expect((await read(secret)).data).toEqual(certificates);
    expect(imageOf(await read(AGENT))).toEndWith(`:${VERSION}`);
    const [installer] = (await read(AGENT)).spec.template.spec.initContainers;
    expect(installer.env).toContainEqual(expect.objectContaining({ name: "ETCD_ENDPOINTS" }));
  });

  testCluster("application layer policy: template, filter and rolling update (rule 9)", async () => {
    await cluster.apply(JSON.stringify(ENVOY_FILTERS));
    await bash("kubectl wait --for=condition=Established crd/envoyfilters.networking.istio.io");
    await cluster.createNamespace("istio-system");
    await cluster.createNamespace("shop");
    await bash("kubectl --namespace shop create deployment web --image=web");

    await type("application layer policy");

    expect(requested).toContain("alp/istio-1.15.yaml");
    const { spec } = await read("/apis/apps/v1/namespaces/shop/deployments/web");
    expect(spec.template.metadata.annotations).toHaveProperty(["kubectl.kubernetes.io/restartedAt"]);
    const filters = "/apis/networking.istio.io/v1alpha3/namespaces/istio-system/envoyfilters";
    expect((await read(`${filters}/${identity.sidecar}`)).spec.configPatches).not.toEqual([]);
  });

  testCluster("automatic host endpoints: labels, switch, deletion (rule 10)", async () => {
    const own = { apiVersion: API_VERSION };
    const hostEndpoints = async () =>
      (await cluster.objects.list(`${OWN_API}/hostendpoints`)).map(({ metadata }: Json) => metadata.name);
    await cluster.objects.create(`${OWN_API}/hostendpoints`, {
      ...own,
      kind: "HostEndpoint",
      metadata: { name: "one-all-interfaces", labels: { role: "edge" } },
      spec: { node: "one", interfaceName: "*" },
    });
    await cluster.objects.create(`${OWN_API}/kubecontrollersconfigurations`, {
      ...own,
      kind: "KubeControllersConfiguration",
      metadata: { name: "default" },
      spec: { controllers: { node: { hostEndpoint: { autoCreate: "Disabled" } } } },
    });

    // The controllers do not run: the host keeps its endpoint.
    const impatient = (script: string) => script.replaceAll("--timeout=60s", "--timeout=1s");
    await expect(type("automatic host endpoints", impatient)).rejects.toThrow("one-auto-hep");
    expect(await hostEndpoints()).toEqual(["one-all-interfaces"]);
    const automatic = { ...own, kind: "HostEndpoint", spec: { node: "one", interfaceName: "*" } };
    const metadata = { name: "one-auto-hep", labels: { role: "other" } };
    await cluster.objects.create(`${OWN_API}/hostendpoints`, { ...automatic, metadata });
    await expect(type("automatic host endpoints", impatient)).rejects.toThrow("timed out");
    expect(await hostEndpoints()).toEqual(["one-all-interfaces", "one-auto-hep"]);
    await cluster.objects.patch(`${OWN_API}/hostendpoints/one-auto-hep`, { metadata: { labels: { role: "edge" } } });

    await type("automatic host endpoints");

    expect((await read("/api/v1/nodes/one")).metadata.labels["role"]).toBe("edge");
    const { spec } = await read(`${OWN_API}/kubecontrollersconfigurations/default`);
    expect(spec.controllers.node.hostEndpoint.autoCreate).toBe("Enabled");
    expect(await hostEndpoints()).toEqual(["one-auto-hep"]);
  });

  testCluster("owner references are found, removed, and added with the new UID (rule 3)", async () => {
    const createPool = async () => {
      const pool = {
        apiVersion: API_VERSION,
        kind: "IPPool",
        metadata: { name: "blue" },
        spec: { cidr: "10.9.0.0/16" },
      };
      await cluster.objects.create(`${OWN_API}/ippools`, pool);
      return String((await read(`${OWN_API}/ippools/blue`)).metadata.uid);
    };
    const before = await createPool();
    const ownerReferences = [{ apiVersion: API_VERSION, kind: "IPPool", name: "blue", uid: before }];
    await cluster.objects.create("/api/v1/namespaces/shop/configmaps", {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "ranges", ownerReferences },
    });
    const owners = async () =>
      (await read("/api/v1/namespaces/shop/configmaps/ranges")).metadata.ownerReferences?.map(({ uid }: Json) => uid);

    expect(await type("owner references before the upgrade")).toContain(`ConfigMap shop ranges ${API_VERSION}`);
    expect(await owners()).toBeUndefined();
    // Somebody has changed the list since: the reference at that place stays.
    const other = {
      apiVersion: "v1",
      kind: "Namespace",
      name: "shop",
      uid: (await read("/api/v1/namespaces/shop")).metadata.uid,
    };
    await cluster.objects.patch("/api/v1/namespaces/shop/configmaps/ranges", {
      metadata: { ownerReferences: [other] },
    });
    await expect(type("owner references before the upgrade", withoutSearch)).rejects.toThrow("The request is invalid");
    expect(await owners()).toEqual([other.uid]);

    await bash(`kubectl delete ippools.${identity.apiGroup} blue`);
    const after = await createPool();
    await type("owner references after the upgrade");
    expect(await owners()).toEqual([after]);
    expect(after).not.toBe(before);
  });

  testCluster("the files are those of the checksums", async () => {
    expect(await bash(`cd release/${VERSION} && sha256sum --check --quiet SHA256SUMS`)).toBe("");
  });

  testCluster("every section of the page was typed", () => {
    expect([...commands.keys()].filter((title) => !typed.has(title))).toEqual([]);
  });
});

describe("typed on a cluster of v3.28 or earlier, changes nothing", () => {
  beforeAll(async () => {
    if (problem !== undefined) return;
    await cluster[Symbol.asyncDispose]();
    cluster = await startOlderCluster({ nodes: ["one"], kinds: ["ClusterInformation"] });
    await createFormerOperatorDefinitions(cluster.objects);
    copyFileSync(cluster.adminKubeconfig, join(folder.path, "home/.kube/config"));
  });

  testCluster("a manifest on etcd", async () => {
    const paths = await layOutManifest(cluster, { version: "v3.28.0", datastore: "etcd", network: "own" });

    expect(await writesOf("manifests on etcd")).toEqual([]);

    for (const path of paths) await cluster.objects.remove(path);
  });

  testCluster("a manifest on the orchestrator's API, by its selector and by its storage", async () => {
    await layOutManifest(cluster, { version: "v3.28.0", datastore: "kubernetes", network: "own" });
    expect(await writesOf("manifests")).toEqual([]);

    await initializeFormerStorage();
    await bash(`kubectl --namespace kube-system delete daemonset ${nodeAgent}`);
    await applyAgentOfBuild();
    expect(await writesOf("manifests")).toEqual([]);
  });

  testCluster("a chart from before v3.23", async () => {
    await installChart("v3.22.5", "default");

    expect(await writesOf("a chart from before v3.23")).toEqual([]);
    expect(await bash("helm list --namespace default --short")).toBe("net\n");

    await bash("helm uninstall net --namespace default --wait");
    await bash(`kubectl wait --for=delete namespace/${OPERATOR}`);
  });

  testCluster("a later chart, and the operator's manifest, by their storage and by the operator", async () => {
    await bash(`kubectl create namespace ${OPERATOR}`);
    await installChart("v3.28.2", OPERATOR);

    expect(await writesOf("other charts")).toEqual([]);
    expect(await writesOf("the operator's manifest")).toEqual([]);
    await bash(`kubectl delete clusterinformations.${FORMER_API.group} default`);
    expect(await writesOf("other charts")).toEqual([]);
    expect(await writesOf("the operator's manifest")).toEqual([]);
    expect(await bash(`helm history net --namespace ${OPERATOR} --max 1`)).toMatch(/^1\s.*deployed/m);
  });
});

async function initializeFormerStorage(): Promise<void> {
  await cluster.objects.create(`/apis/${apiVersionOf(FORMER_API)}/clusterinformations`, {
    apiVersion: apiVersionOf(FORMER_API),
    kind: "ClusterInformation",
    metadata: { name: "default" },
    spec: { datastoreReady: true },
  });
}

/** As if somebody had deleted the former one, and applied a part of the manifest. */
async function applyAgentOfBuild(): Promise<void> {
  const text = await Bun.file(join(folder.path, "release", VERSION, `${product}.yaml`)).text();
  await Bun.write(
    join(folder.path, "agent.yaml"),
    text.split("---\n").filter((part) => /^kind: DaemonSet$/m.test(part))[0] ?? "",
  );
  await bash("kubectl apply --server-side --filename agent.yaml");
}

async function installChart(version: "v3.22.5" | "v3.28.2", namespace: string): Promise<void> {
  const chart = writeFormerChart(join(folder.path, `former-${version}`), version);
  await bash(`helm install net ${chart} --namespace ${namespace}`);
}

/** Of the mesh, as far as its filters need it. */
const ENVOY_FILTERS = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "envoyfilters.networking.istio.io" },
  spec: {
    group: "networking.istio.io",
    scope: "Namespaced",
    names: { kind: "EnvoyFilter", plural: "envoyfilters", singular: "envoyfilter" },
    versions: [
      {
        name: "v1alpha3",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
};
