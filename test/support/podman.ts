/** podman with its CNI backend, on a private host. */
import { join } from "node:path";
import { type Finished, type Host, hostProblem } from "./host.ts";
import { makeRootfs, rootfsProblem } from "./rootfs.ts";

export interface Podman {
  /** Starts a container that runs `command`; `ports` in the format of podman's `-p`, `more`: other options. */
  run(
    name: string,
    network: string,
    command: readonly string[],
    ports?: readonly string[],
    more?: readonly string[],
  ): Promise<void>;
  exec(name: string, command: readonly string[]): Promise<string>;
  addressesOf(name: string, network: string): Promise<readonly string[]>;
  /** Its container ID in CNI calls. */
  sandboxOf(name: string): Promise<{ readonly containerId: string; readonly netns: string }>;
  stop(name: string): Promise<void>;
  start(name: string): Promise<void>;
  remove(name: string): Promise<void>;
  /** Loads the archive of an image; returns the names that podman gives to it. */
  load(archive: string): Promise<string>;
  /** Runs a container of an image, without a network, until it exits. */
  runOnce(image: string, command: readonly string[]): Promise<Finished>;
  /** Connects a running container again: DEL and ADD. */
  reload(name: string): Promise<void>;
}

export function podmanProblem(): string | undefined {
  if (Bun.which("podman") === null || Bun.which("runc") === null) return "needs podman and runc";
  return hostProblem() ?? rootfsProblem();
}

export function usePodman(host: Host): Podman {
  const rootfs = makeRootfs(host);
  const at = (name: string) => join(host.directory, name);
  host.writeFile(at("containers.conf"), CONTAINERS_CONF);
  host.writeFile(
    at("storage.conf"),
    `[storage]\ndriver = "overlay"\ngraphroot = "${at("podman-graph")}"\nrunroot = "${at("podman-run")}"\n`,
  );
  const environment = { CONTAINERS_CONF: at("containers.conf"), CONTAINERS_STORAGE_CONF: at("storage.conf") };
  const podman = (...command: readonly string[]) => host.must(["podman", ...command], { environment });

  return {
    async run(name, network, command, ports = [], more = []) {
      const published = ports.flatMap((port) => ["-p", port]);
      const options = ["--name", name, "--network", network, "--cgroup-parent", `/${host.name}`, ...published, ...more];
      await podman("run", "-d", ...options, "--rootfs", `${rootfs}:O`, ...command);
    },
    exec: (name, command) => podman("exec", name, ...command),
    async addressesOf(name, network) {
      const [{ NetworkSettings }] = JSON.parse(await podman("inspect", name));
      const { IPAddress, GlobalIPv6Address } = NetworkSettings.Networks[network];
      return [IPAddress, GlobalIPv6Address].filter((address) => typeof address === "string" && address !== "");
    },
    async sandboxOf(name) {
      const [{ Id, NetworkSettings }] = JSON.parse(await podman("inspect", name));
      return { containerId: String(Id), netns: String(NetworkSettings.SandboxKey) };
    },
    async stop(name) {
      await podman("stop", "-t", "0", name);
    },
    async start(name) {
      await podman("start", name);
    },
    async remove(name) {
      await podman("rm", "-f", "-t", "0", name);
    },
    load(archive) {
      const limitMilliseconds = 120_000;
      return host.must(["podman", "load", "--quiet", "--input", archive], { environment, limitMilliseconds });
    },
    runOnce(image, command) {
      const options = ["--rm", "--network", "none", "--cgroup-parent", `/${host.name}`];
      return host.run(["podman", "run", ...options, image, ...command], { environment });
    },
    async reload(name) {
      await podman("network", "reload", name);
    },
  };
}

/**
 * No `default_network`: where the named network does not validate, podman falls
 * back to a bridge of its own without a word. The limits fit hosts that may not
 * raise theirs, and crun refuses hosts with both cgroup versions.
 */
const CONTAINERS_CONF = `
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "cni"
network_config_dir = "/etc/cni/net.d"
cni_plugin_dirs = ["/opt/cni/bin"]
`;
