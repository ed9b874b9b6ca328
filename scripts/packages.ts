/**
 * The Debian packages that tests, demo and benchmarks use, and how they come:
 * installed when root on a Debian host; otherwise the missing programs are
 * named, and the tests that need them skip themselves with that reason.
 */
const PACKAGES: Readonly<Record<string, string>> = {
  ip: "iproute2",
  etcd: "etcd-server",
  nft: "nftables",
  ping: "iputils-ping",
  // The shells that completion scripts are tried in.
  zsh: "zsh",
  fish: "fish",
  "/usr/lib/cni/host-local": "containernetworking-plugins",
  // Real clients of the plugin (test/clients): both engines run containers by runc, which takes hosts with both cgroup versions.
  podman: "podman",
  containerd: "containerd",
  runc: "runc",
  // The root file system of their containers.
  busybox: "busybox-static",
  // Upstream's portmap, the peer, works through it.
  iptables: "iptables",
  // Looks at what is left: processes, and tracked connections of host ports.
  ps: "procps",
  conntrack: "conntrack",
  // Measures shaped rates.
  iperf3: "iperf3",
};

/** `programs`: those that matter; all of them when absent. */
export async function installPackages(programs: readonly string[] = Object.keys(PACKAGES)): Promise<void> {
  const missing = Object.entries(PACKAGES).filter(
    ([program]) => programs.includes(program) && Bun.which(program) === null,
  );
  if (missing.length === 0) return;

  const packages = [...new Set(missing.map(([, name]) => name))];
  const canInstall = process.getuid?.() === 0 && Bun.which("apt-get") !== null;
  if (!canInstall) {
    console.log(`missing: ${packages.join(", ")}: tests that need them are skipped (as root, this installs them)`);
    return;
  }
  const environment = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const quiet = { stdin: "ignore", stdout: "ignore", stderr: "inherit", env: environment } as const;
  await Bun.spawn(["apt-get", "update", "-qq"], quiet).exited;
  await Bun.spawn(["apt-get", "install", "-y", "-qq", "--no-install-recommends", ...packages], quiet).exited;
}
