/**
 * The commands for application layer policy on a real kube-apiserver. The configuration of an injector that `alp template`
 * prints is rendered by Go's text/template and merged into a pod as the mesh does it: strategic merge and validation are
 * those of the server.
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { MESH_MINORS, type MeshMinor } from "../../src/alp/mesh/mesh-minor.ts";
import { identity } from "../../src/identity.ts";
import type { KubeClient, KubeRequest } from "../../src/kube/api.ts";
import { openKubeClient } from "../../src/kube/client.ts";
import { requireOk } from "../../src/kube/require-ok.ts";
import { SIDECAR_ANNOTATION } from "../../src/model/sidecar-annotation.ts";
import { VERSION } from "../../src/version.ts";
import { partIfBuilt } from "../parts/build.ts";
import { runInside } from "../support/admin-context.ts";
import { meansWith } from "../support/imitated-api.ts";
import { injectorConfig } from "../support/injector-config.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { meshTemplatesProblem, realInjectorConfig } from "../support/mesh-templates.ts";
import { testNeeding } from "../support/needs.ts";
import { proofSize } from "../support/proof-size.ts";

const renderer = partIfBuilt("injection");
const problem = apiServerProblem() ?? ("missing" in renderer ? renderer.missing : undefined);

const NAMESPACE = "shop";
const IMAGE = "registry.example.org/vendor:v9";

let server: ApiServer;
let client: KubeClient;
beforeAll(async () => {
  if (problem !== undefined) return;
  server = await startApiServer();
  client = await openKubeClient({ kubeconfigs: [server.adminKubeconfig] }, meansWith());
  await server.createNamespace(NAMESPACE);
  await server.createNamespace("istio-system");
});
afterAll(async () => {
  await client?.close();
  await server?.stop();
});

/** Every day one minor of each kind of configuration: with one template, and with several. */
const minors = proofSize<readonly MeshMinor[]>({ everyDay: ["1.7", "1.15"], soak: MESH_MINORS });
const minorsWithRealTemplate = proofSize<readonly MeshMinor[]>({ everyDay: [], soak: MESH_MINORS });

for (const minor of minors) {
  testNeeding(problem)(`alp template of mesh ${minor} makes pods that the API server accepts`, async () => {
    await expectPodWithSidecar(minor, injectorConfig(minor));
  });
}

for (const minor of minorsWithRealTemplate) {
  testNeeding(problem, meshTemplatesProblem())(`alp template of mesh ${minor} takes its real template`, async () => {
    await expectPodWithSidecar(minor, realInjectorConfig(minor));
  });
}

testNeeding(problem)("kubectl applies what alp template prints, also as a patch", async () => {
  const data = { config: injectorConfig("1.15"), values: "{}" };
  const metadata = { name: "istio-sidecar-injector", namespace: "istio-system" };
  await server.apply(JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata, data }));
  const args = ["alp", "template", "--mesh-version=1.15"];
  await server.apply((await runInside(args, surroundings())).stdout);
  const patch = (await runInside([...args, "--image=other:v1", "-o", "patch"], surroundings())).stdout;
  const of = ["patch", "configmap", metadata.name, "--namespace=istio-system"];
  await server.kubectl([...of, "--type=merge", "--patch", patch]);

  const { stderr } = await runInside([...args, "--image=other:v1"], surroundings());
  expect(stderr).toBe("The injector has this sidecar already: other:v1\n");
});

testNeeding(problem)("alp status finds the Deployment of a pod, and what its sidecar reports", async () => {
  const apps = `/apis/apps/v1/namespaces/${NAMESPACE}`;
  const labels = { app: "store" };
  const template = {
    metadata: { labels },
    spec: { containers: [OWN_CONTAINER, { name: identity.sidecar, image: IMAGE }] },
  };
  const workload = { selector: { matchLabels: labels }, template };
  const deployment = await create(`${apps}/deployments`, { metadata: { name: "store" }, spec: workload });
  const of = (owner: Created, kind: string) => [
    { apiVersion: "apps/v1", kind, name: owner.metadata.name, uid: owner.metadata.uid, controller: true },
  ];
  const replicas = { metadata: { name: "store-1", ownerReferences: of(deployment, "Deployment") }, spec: workload };
  const replicaSet = await create(`${apps}/replicasets`, replicas);
  const annotations = { [SIDECAR_ANNOTATION]: VERSION };
  const metadata = { name: "store-1-a", labels, annotations, ownerReferences: of(replicaSet, "ReplicaSet") };
  await create(`/api/v1/namespaces/${NAMESPACE}/pods`, { metadata, spec: template.spec });

  for (const scope of [["-A"], ["-n", NAMESPACE]]) {
    const { code, stdout } = await runInside(["alp", "status", ...scope], surroundings());
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`deployment/store +${VERSION} +1 +1/1 +ok\n`));
  }
});

async function expectPodWithSidecar(minor: MeshMinor, config: string): Promise<void> {
  const pod = await injected(await throughCluster(minor, config));
  const sidecar = pod.spec.containers.find(({ name }) => name === identity.sidecar);
  const proxy = pod.spec.containers.find(({ name }) => name === "istio-proxy");
  expect(sidecar).toMatchObject({
    image: IMAGE,
    args: expect.arrayContaining(["--trust-domain=mesh.example"]),
    readinessProbe: { httpGet: { path: "/readiness", port: 9098 } },
    securityContext: { runAsUser: 65532, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } },
  });
  const socket = `${identity.runDirectory}/authorization`;
  expect(proxy?.volumeMounts).toContainEqual({
    name: `${identity.sidecar}-authorization`,
    mountPath: socket,
    readOnly: true,
  });
  expect(pod.spec.volumes).toContainEqual({
    name: `${identity.sidecar}-policy`,
    csi: { driver: identity.csiDriver, readOnly: true, volumeAttributes: { user: "65532" } },
  });
  const excluded = pod.spec.initContainers?.[0]?.args?.find((argument) => argument.startsWith("15090"));
  expect(excluded?.split(",")).toContain("9098");
}

const surroundings = () => ({
  env: { KUBECONFIG: server.adminKubeconfig },
  openKubeClient: () => openKubeClient({ kubeconfigs: [server.adminKubeconfig] }, meansWith()),
});

/** Stores the configuration in the cluster, and returns it as `alp template` prints it; the second time, nothing changes. */
async function throughCluster(minor: MeshMinor, config: string): Promise<string> {
  const name = `istio-sidecar-injector-${crypto.randomUUID()}`;
  const path = "/api/v1/namespaces/istio-system/configmaps";
  await send({ method: "POST", path }, { metadata: { name }, data: { config } });
  const revision = name.replace("istio-sidecar-injector-", "");
  const args = ["alp", "template", `--mesh-version=${minor}`, `--revision=${revision}`, `--image=${IMAGE}`];
  const first = await runInside(args, surroundings());
  await send({ method: "PUT", path: `${path}/${name}` }, Bun.YAML.parse(first.stdout));
  const second = await runInside([...args, "-o", "json"], surroundings());
  expect(second.stderr).toBe(`The injector has this sidecar already: ${IMAGE}\n`);
  return JSON.parse(second.stdout).data.config;
}

interface Container {
  readonly name: string;
  readonly args?: readonly string[];
  readonly volumeMounts?: readonly object[];
}

interface PodSpec {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes?: readonly object[];
}

interface Pod {
  readonly spec: PodSpec;
}

const OWN_CONTAINER: Container = { name: "web", ...{ image: "example.org/web:1" } };

async function injected(config: string): Promise<Pod> {
  const { template, templates, defaultTemplates } = Bun.YAML.parse(config) as {
    readonly template: string;
    readonly templates?: Readonly<Record<string, string>>;
    readonly defaultTemplates?: readonly string[];
  };
  const spec =
    templates === undefined
      ? appended(rendered<PodSpec>(template))
      : await merged((defaultTemplates ?? []).map((name) => rendered<Pod>(templates[name] ?? "")));
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "web" }, spec };
  return send({ method: "POST", path: `/api/v1/namespaces/${NAMESPACE}/pods`, query: { dryRun: "All" } }, pod);
}

function rendered<T>(template: string): T {
  if ("missing" in renderer) throw new Error(renderer.missing);
  const { stdout, stderr, exitCode } = Bun.spawnSync([renderer.path], { stdin: Buffer.from(template) });
  if (exitCode !== 0) throw new Error(stderr.toString());
  return Bun.YAML.parse(stdout.toString()) as T;
}

/** Mesh 1.7 and older append lists; an argument may be a number there. */
function appended({ containers, initContainers = [], volumes = [] }: PodSpec): PodSpec {
  const texts = (container: Container) => ({
    ...container,
    ...(container.args && { args: container.args.map(String) }),
  });
  return { containers: [OWN_CONTAINER, ...containers.map(texts)], initContainers: initContainers.map(texts), volumes };
}

/** A PodTemplate can be patched again and again, unlike a pod. */
async function merged(overlays: readonly Pod[]): Promise<PodSpec> {
  const path = `/api/v1/namespaces/${NAMESPACE}/podtemplates`;
  const name = `web-${crypto.randomUUID()}`;
  const template = { metadata: { labels: { app: "web" } }, spec: { containers: [OWN_CONTAINER] } };
  const created = { metadata: { name }, template };
  let { template: result } = await send<{ readonly template: Pod }>({ method: "POST", path }, created);
  for (const overlay of overlays) {
    const contentType = "application/strategic-merge-patch+json";
    const request = { method: "PATCH", path: `${path}/${name}`, contentType } as const;
    ({ template: result } = await send<{ readonly template: Pod }>(request, { template: overlay }));
  }
  return result.spec;
}

interface Created {
  readonly metadata: { readonly name: string; readonly uid: string };
}

function create(path: string, object: object): Promise<Created> {
  return send<Created>({ method: "POST", path }, object);
}

async function send<T>(request: KubeRequest, body: unknown): Promise<T> {
  return JSON.parse(requireOk(await client.request({ ...request, body: JSON.stringify(body) }), request));
}
