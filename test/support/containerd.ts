/** containerd on a private host: `ctr` with CNI, and the CRI. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Cri, connectCri } from "./cri.ts";
import { type Finished, type Host, hostProblem } from "./host.ts";
import { pollUntil } from "./poll.ts";
import { IMAGE, makeImageArchive, makeRootfs, rootfsProblem } from "./rootfs.ts";

export interface Containerd extends Disposable {
  readonly cri: Cri;
  /** `ctr` in the host's own containerd namespace. */
  ctr(...command: readonly string[]): Promise<Finished>;
  /** Runs a container with the first network of /etc/cni/net.d until it exits; returns what it printed. */
  runOnce(id: string, command: readonly string[]): Promise<string>;
  /** Starts a container that keeps running. `ctr` never calls DEL for it: GC has to remove its attachment. */
  runDetached(id: string, command: readonly string[]): Promise<void>;
  exec(id: string, command: readonly string[]): Promise<string>;
  remove(id: string): Promise<void>;
  /** Runs a command inside a pod's sandbox. */
  execInSandbox(id: string, command: readonly string[]): Promise<string>;
}

export const SOCKET = "/run/containerd/containerd.sock";

export function containerdProblem(): string | undefined {
  const missing = ["containerd", "ctr", "runc"].filter((program) => Bun.which(program) === null);
  if (missing.length > 0) return `needs ${missing.join(", ")}`;
  return hostProblem() ?? rootfsProblem();
}

export async function startContainerd(host: Host): Promise<Containerd> {
  const config = join(host.directory, "containerd.toml");
  host.writeFile(config, containerdConfig(host, IMAGE));
  const archive = makeImageArchive(host, makeRootfs(host));
  host.start(["containerd", "-c", config], "containerd.log");
  await pollUntil(() => existsSync(host.view(SOCKET)), "containerd's socket");

  const namespace = host.name;
  const imported = ["images", "import", "--snapshotter", "overlayfs", await archive];
  await Promise.all(["k8s.io", namespace].map((space) => host.must(["ctr", "-n", space, ...imported])));
  const cri = connectCri(host.view(SOCKET));
  await pollUntil(async () => (await cri.networkTrouble()) === undefined, "the CRI's network");

  let executions = 0;
  const execIn = (space: string, id: string, command: readonly string[]) => {
    executions += 1;
    return host.must(["ctr", "-n", space, "tasks", "exec", "--exec-id", `e${executions}`, id, ...command]);
  };
  return {
    cri,
    ctr: (...command) => host.run(["ctr", "-n", namespace, ...command]),
    runOnce: (id, command) => host.must(["ctr", "-n", namespace, "run", "--rm", "--cni", IMAGE, id, ...command]),
    async runDetached(id, command) {
      await host.must(["ctr", "-n", namespace, "run", "-d", "--cni", IMAGE, id, ...command]);
    },
    exec: (id, command) => execIn(namespace, id, command),
    async remove(id) {
      await host.must(["ctr", "-n", namespace, "tasks", "delete", "--force", id]);
      await host.must(["ctr", "-n", namespace, "containers", "delete", id]);
    },
    execInSandbox: (id, command) => execIn("k8s.io", id, command),
    [Symbol.dispose]: () => cri[Symbol.dispose](),
  };
}

/** `restrict_oom_score_adj`: hosts without CAP_SYS_RESOURCE cannot lower the score. */
export function containerdConfig(host: Host, sandboxImage: string): string {
  const at = (name: string) => join(host.directory, name);
  const unused = ["btrfs", "zfs", "aufs", "devmapper"].map((kind) => `"io.containerd.snapshotter.v1.${kind}"`);
  return `
version = 2
root = "${at("containerd-root")}"
state = "${at("containerd-state")}"
disabled_plugins = [${unused.join(", ")}, "io.containerd.internal.v1.tracing"]
[grpc]
  address = "${SOCKET}"
[plugins."io.containerd.internal.v1.opt"]
  path = "${at("containerd-opt")}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${sandboxImage}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  disable_hugetlb_controller = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
`;
}
