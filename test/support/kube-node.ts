/**
 * A node of a test cluster: the real kubelet and containerd on a private host, with
 * the images of `kube-images.ts`. Where it looks for CNI plugins and configs
 * (/opt/cni/bin, /etc/cni/net.d) is private too: `installNetwork` fills both.
 */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { makeCgroups, removeCgroups } from "./cgroups.ts";
import { containerdConfig, containerdProblem, SOCKET } from "./containerd.ts";
import { connectCri } from "./cri.ts";
import { type Host, openHost } from "./host.ts";
import { type HostDaemon, startHostDaemon } from "./host-daemon.ts";
import { type ApiServer, kubeProgram } from "./kube-apiserver.ts";
import { kubeImages, PAUSE_IMAGE } from "./kube-images.ts";
import { clearVolatile, mountPoints } from "./kube-node-reboot.ts";
import { pollUntil } from "./poll.ts";

export interface KubeNodePlan {
  readonly name: string;
  /** Installs a network before the runtime starts. Without one the node is not Ready, and is not waited for. */
  readonly install?: (host: Host) => Promise<void>;
  /** Archives of images that its pods use besides those of `kube-images.ts`. */
  readonly images?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  /** Overrides fields of the kubelet's configuration. */
  readonly kubelet?: Readonly<Record<string, unknown>>;
}

export interface NodePlace {
  /** The one of each family that the node reports; the first decides about the family of its own pods. */
  readonly addresses: readonly string[];
  /** Gives the host its eth0. */
  connect(host: Host): Promise<void>;
}

export interface KubeNode extends AsyncDisposable {
  readonly name: string;
  readonly host: Host;
  readonly addresses: readonly string[];
  readonly kubelet: HostDaemon;
  readonly containerd: HostDaemon;
  /** Kills the kubelet and starts it again, perhaps with other addresses to report. */
  restartKubelet(addresses?: readonly string[]): Promise<void>;
  /** Kills containerd and starts it again; its pods keep running. */
  restartContainerd(): Promise<void>;
  /** Everything that a machine loses when it loses power is gone; /etc, /opt and /var are still there. Runtime and kubelet start again. */
  reboot(): Promise<void>;
  /** Waits until the API server calls it Ready. */
  untilReady(): Promise<void>;
}

/** Static pods: every manifest in this directory of the host. */
export const MANIFESTS = "/etc/kubernetes/manifests";

const READY_LIMIT_MILLISECONDS = 60_000;

/** Why there is no node here; undefined if there is. */
export function kubeNodeProblem(): string | undefined {
  return containerdProblem();
}

export async function startKubeNode(server: ApiServer, plan: KubeNodePlan, place: NodePlace): Promise<KubeNode> {
  await using undo = new AsyncDisposableStack();
  const host = undo.use(await openHost());
  await place.connect(host);
  // The kubelet reports it, and the product tells machines apart by it.
  host.writeFile("/etc/machine-id", `${crypto.randomUUID().replaceAll("-", "")}\n`);
  makeCgroups(host.name);
  const images = [...(await kubeImages()), ...(plan.images ?? [])];
  await plan.install?.(host);
  const mountsOfBoot = mountPoints(host);

  const containerd = startHostDaemon(host, "containerd", containerdCommand(host));
  await untilRuntimeResponds(host, containerd);
  for (const image of images) {
    await host.must(["ctr", "-n", "k8s.io", "images", "import", image], {
      limitMilliseconds: READY_LIMIT_MILLISECONDS,
    });
  }
  const kubelet = startHostDaemon(host, "kubelet", kubeletCommand(host, server, plan, place));
  const restartContainerd = async () => {
    await containerd.kill();
    containerd.start();
    await untilRuntimeResponds(host, containerd);
  };
  const node: KubeNode = {
    name: plan.name,
    host,
    addresses: place.addresses,
    kubelet,
    containerd,
    async restartKubelet(addresses) {
      await kubelet.kill();
      kubelet.start(addresses && kubeletCommand(host, server, plan, { ...place, addresses }));
    },
    restartContainerd,
    async reboot() {
      await kubelet.kill();
      await containerd.kill();
      await clearVolatile(host, mountsOfBoot);
      removeCgroups(host.name);
      makeCgroups(host.name);
      containerd.start();
      await untilRuntimeResponds(host, containerd);
      kubelet.start();
    },
    untilReady: () => untilReady(server, plan.name, kubelet),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
  if (plan.install) await node.untilReady();
  const all = undo.move();
  return node;
}

function containerdCommand(host: Host): readonly string[] {
  const path = join(host.directory, "containerd.toml");
  host.writeFile(path, containerdConfig(host, PAUSE_IMAGE));
  return ["containerd", "-c", path];
}

async function untilRuntimeResponds(host: Host, containerd: HostDaemon): Promise<void> {
  const responds = async () => {
    if (!existsSync(host.view(SOCKET))) return false;
    using cri = connectCri(host.view(SOCKET));
    await cri.networkTrouble();
    return true;
  };
  await pollUntil(responds, "containerd to respond", READY_LIMIT_MILLISECONDS).catch((error) => {
    throw new Error(`${error.message}:\n${containerd.log()}`, { cause: error });
  });
}

function kubeletCommand(
  host: Host,
  server: ApiServer,
  plan: KubeNodePlan,
  { addresses }: NodePlace,
): readonly string[] {
  const { credentials } = server;
  const certificate = credentials.makeNode(
    plan.name,
    addresses.map((address) => `IP:${address}`),
  );
  const config = join(host.directory, "kubelet.json");
  mkdirSync(host.view(MANIFESTS), { recursive: true });
  host.writeFile(
    config,
    JSON.stringify({
      ...KUBELET_CONFIG,
      authentication: {
        anonymous: { enabled: false },
        webhook: { enabled: true },
        x509: { clientCAFile: credentials.authority.cert },
      },
      tlsCertFile: certificate.cert,
      tlsPrivateKeyFile: certificate.key,
      cgroupRoot: `/${host.name}`,
      // Without IPv4 the API server could not reach it at 0.0.0.0.
      address: addresses.every((address) => address.includes(":")) ? "::" : "0.0.0.0",
      ...plan.kubelet,
    }),
  );
  const labels = Object.entries(plan.labels ?? {}).map((label) => label.join("="));
  return [
    kubeProgram("kubelet"),
    `--config=${config}`,
    `--kubeconfig=${credentials.writeKubeconfig(`node-${plan.name}`, certificate)}`,
    `--hostname-override=${plan.name}`,
    `--node-ip=${addresses.join(",")}`,
    `--node-labels=${labels.join(",")}`,
  ];
}

/** Works with both cgroup versions, without systemd, and never evicts a pod. */
const KUBELET_CONFIG = {
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  kind: "KubeletConfiguration",
  authorization: { mode: "Webhook" },
  containerRuntimeEndpoint: `unix://${SOCKET}`,
  staticPodPath: MANIFESTS,
  failCgroupV1: false,
  cgroupDriver: "cgroupfs",
  cgroupsPerQOS: true,
  enforceNodeAllocatable: [],
  failSwapOn: false,
  localStorageCapacityIsolation: false,
  resolvConf: "",
  makeIPTablesUtilChains: false,
  imageGCHighThresholdPercent: 100,
  evictionHard: {
    "memory.available": "0%",
    "nodefs.available": "0%",
    "nodefs.inodesFree": "0%",
    "imagefs.available": "0%",
  },
  syncFrequency: "10s",
  fileCheckFrequency: "2s",
  nodeStatusUpdateFrequency: "4s",
};

async function untilReady(server: ApiServer, name: string, kubelet: HostDaemon): Promise<void> {
  // It fails at once as long as there is no such node.
  const wait = () => server.kubectl(["wait", "--for=condition=Ready", `node/${name}`, "--timeout=5s"]);
  const isReady = () =>
    wait().then(
      () => true,
      () => false,
    );
  await pollUntil(isReady, `node ${name} to be Ready`, READY_LIMIT_MILLISECONDS).catch((error) => {
    throw new Error(`${error.message}:\n${kubelet.log()}`, { cause: error });
  });
}
