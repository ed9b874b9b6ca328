/**
 * One node on which the product is installed by its manifest, as an administrator does it, with clients whose requests the
 * test sends itself from their network namespaces:
 *
 *   namespace "shop":   web (application, Envoy, sidecar), alone (without sidecar), frontend, batch
 *   namespace "other":  stranger
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import {
  type BareControlPlane,
  type BareNode,
  bareClusterProblem,
  openBareControlPlane,
  POD_RANGES,
} from "../support/bare-cluster.ts";
import { makeRoot, makeSigned } from "../support/certificates.ts";
import { preferCgroups } from "../support/cgroups.ts";
import { envoyProblem } from "../support/envoy.ts";
import { envoyImage } from "../support/envoy-image.ts";
import type { Host } from "../support/host.ts";
import { AGNHOST_IMAGE } from "../support/kube-images.ts";
import { manifestText } from "../support/manifest-text.ts";
import { pollUntil } from "../support/poll.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { quickStart } from "./quick-start.ts";
import { envoyObjects, servedPod, TRUST_DOMAIN } from "./served-pod.ts";

export const SHOP = "shop";
const OTHER = "other";

/** Pods that send requests: their service account has the same name. */
export const CLIENTS = {
  frontend: { namespace: SHOP, labels: { tier: "front" } },
  batch: { namespace: SHOP, labels: { tier: "back" } },
  stranger: { namespace: OTHER, labels: { tier: "front" } },
} as const;

export type ClientName = keyof typeof CLIENTS;

export interface Client {
  readonly address: string;
  readonly netns: string;
}

export interface AlpCluster extends AsyncDisposable {
  readonly controlPlane: BareControlPlane;
  readonly node: BareNode;
  readonly clients: Readonly<Record<ClientName, Client>>;
  /** A certificate of this identity, `NAMESPACE/ACCOUNT`, or with this whole URI. */
  certificateOf(name: string): { readonly cert: string; readonly key: string };
  apply(...objects: readonly object[]): Promise<void>;
  /** Runs the admin tool as the administrator of the cluster. */
  admin(...args: readonly string[]): Promise<string>;
  /** Waits until a pod is Ready; returns its address. */
  ready(namespace: string, name: string): Promise<string>;
}

const ADMIN_TOOL = join(import.meta.dir, "../../dist/bin", identity.adminTool);
const LIMIT_MILLISECONDS = 60_000;

/** Why there is none here; undefined if there is. */
export function alpProblem(): string | undefined {
  return bareClusterProblem() ?? envoyProblem();
}

export async function openAlpCluster(): Promise<AlpCluster> {
  await using undo = new AsyncDisposableStack();
  const controlPlane = undo.use(await openBareControlPlane());
  const { server, host } = controlPlane;
  const node = await controlPlane.addNode("node-1", {
    images: [await envoyImage()],
    // Containers that are killed again and again start again at once.
    kubelet: { crashLoopBackOff: { maxContainerRestartPeriod: "1s" } },
  });
  // What is measured is the product, not what is left of a busy machine.
  preferCgroups(node.host.name);
  await server.kubectl(["apply", "--server-side", "--filename=-"], manifest());
  const directory = temporaryDirectory("alp");
  undo.defer(directory.remove);
  const authority = makeRoot(directory.path, "authority");
  const made = new Map<string, { readonly cert: string; readonly key: string }>();
  const certificateOf = (name: string) => {
    const known = made.get(name);
    if (known !== undefined) return known;
    const uri = principalOf(name);
    const files = makeSigned(directory.path, `certificate-${made.size}`, authority, { names: [`URI:${uri}`] });
    const texts = { cert: readFileSync(files.cert, "utf8"), key: readFileSync(files.key, "utf8") };
    made.set(name, texts);
    return texts;
  };
  const apply = (...objects: readonly object[]) =>
    server.apply(objects.map((each) => JSON.stringify(each)).join("\n---\n"));
  for (const namespace of [SHOP, OTHER]) await server.createNamespace(namespace);
  const serverCertificate = { ...certificateOf(`${SHOP}/web`), authority: readFileSync(authority.cert, "utf8") };
  await node.untilReady();
  await apply(
    ...envoyObjects(SHOP, serverCertificate),
    servedPod({
      name: "web",
      namespace: SHOP,
      labels: { app: "web" },
      node: node.name,
      image: controlPlane.image.name,
    }),
    servedPod({ name: "alone", namespace: SHOP, labels: { app: "web" }, node: node.name }),
    ...Object.entries(CLIENTS).flatMap(([name, plan]) => clientObjects(name, node.name, plan)),
  );
  await server.apply(quickStart(controlPlane.image.name));
  const ready = async (namespace: string, name: string) => {
    const inNamespace = `--namespace=${namespace}`;
    await server
      .kubectl(["wait", "--for=condition=Ready", `pod/${name}`, inNamespace, "--timeout=60s"])
      .catch(async (error) => {
        const why = await server.kubectl(["describe", "pod", name, inNamespace]);
        throw new Error(`${error.message}\n${why}`, { cause: error });
      });
    const pod = await server.get<{ readonly status: { readonly podIP: string } }>("pod", name, inNamespace);
    return pod.status.podIP;
  };
  const clientOf = async (name: ClientName): Promise<Client> => {
    const address = await ready(CLIENTS[name].namespace, name);
    return { address, netns: await netnsWith(node, address) };
  };
  const clients = {
    frontend: await clientOf("frontend"),
    batch: await clientOf("batch"),
    stranger: await clientOf("stranger"),
  };
  const all = undo.move();
  return {
    controlPlane,
    node,
    clients,
    certificateOf,
    apply,
    admin: (...args) =>
      host.must([ADMIN_TOOL, ...args], {
        environment: { DATASTORE_TYPE: "kubernetes", KUBECONFIG: server.adminKubeconfig },
        limitMilliseconds: LIMIT_MILLISECONDS,
      }),
    ready,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** The name in the certificate of `NAMESPACE/ACCOUNT`, or this URI. */
export function principalOf(name: string): string {
  const [namespace, account] = name.split("/");
  return name.includes("://") ? name : `spiffe://${TRUST_DOMAIN}/ns/${namespace}/sa/${account}`;
}

/** As an administrator edits it: with the pools of this cluster. */
function manifest(): string {
  const pools = POD_RANGES.map((cidr) => ({ cidr, vxlanMode: "CrossSubnet", natOutgoing: true }));
  return manifestText(`${identity.product}.yaml`).replace(
    /(default_pools: )\|\n( {4}.*\n)+/,
    (_, key: string) => `${key}'${JSON.stringify(pools)}'\n`,
  );
}

function clientObjects(
  name: string,
  nodeName: string,
  { namespace, labels }: { readonly namespace: string; readonly labels: object },
): readonly object[] {
  const metadata = { name, namespace };
  const container = { name: "main", image: AGNHOST_IMAGE, imagePullPolicy: "Never" };
  const spec = { nodeName, serviceAccountName: name, terminationGracePeriodSeconds: 1, containers: [container] };
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    { apiVersion: "v1", kind: "Pod", metadata: { ...metadata, labels }, spec },
  ];
}

/** The path of the network namespace that has this address: the one of a pod's sandbox. */
async function netnsWith({ host }: BareNode, address: string): Promise<string> {
  let found: string | undefined;
  const isFound = () => {
    const processes = readdirSync(host.view("/proc")).filter((name) => commandOf(host, name) === "pause\n");
    found = processes.map((pid) => host.view(`/proc/${pid}/ns/net`)).find((netns) => hasAddress(netns, address));
    return found !== undefined;
  };
  await pollUntil(isFound, `a network namespace with ${address}`);
  return found ?? "";
}

function commandOf(host: Host, pid: string): string {
  try {
    return readFileSync(host.view(`/proc/${pid}/comm`), "utf8");
  } catch {
    return "";
  }
}

function hasAddress(netns: string, address: string): boolean {
  const { stdout } = Bun.spawnSync(["nsenter", `--net=${netns}`, "ip", "-oneline", "address"]);
  return stdout.toString().includes(` ${address}/`);
}
