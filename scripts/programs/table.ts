/**
 * Every program that tests, demo, benchmarks and scripts start, with the Debian
 * package that contains it. `install.ts` installs missing packages; `make bare` finds one that is not declared here.
 * A key with a slash is the path of a file that is read or started.
 */

/** Present on every Debian: these packages are essential or required, or needed to get this far. */
const ALWAYS_PRESENT = {
  bash: "bash",
  sh: "dash",
  cat: "coreutils",
  chmod: "coreutils",
  chroot: "coreutils",
  cmp: "diffutils",
  cp: "coreutils",
  du: "coreutils",
  env: "coreutils",
  false: "coreutils",
  ln: "coreutils",
  mkdir: "coreutils",
  mv: "coreutils",
  nice: "coreutils",
  readlink: "coreutils",
  rm: "coreutils",
  rmdir: "coreutils",
  sha256sum: "coreutils",
  sleep: "coreutils",
  sort: "coreutils",
  sync: "coreutils",
  timeout: "coreutils",
  true: "coreutils",
  tr: "coreutils",
  dpkg: "dpkg",
  "dpkg-deb": "dpkg",
  "dpkg-query": "dpkg",
  "dpkg-statoverride": "dpkg",
  find: "findutils",
  grep: "grep",
  tar: "tar",
  script: "bsdutils",
  flock: "util-linux",
  nsenter: "util-linux",
  pivot_root: "util-linux",
  prlimit: "util-linux",
  setpriv: "util-linux",
  taskset: "util-linux",
  unshare: "util-linux",
  mount: "mount",
  umount: "mount",
  "apt-config": "apt",
  "apt-get": "apt",
  "/usr/lib/apt/apt-helper": "apt",
  ldd: "libc-bin",
  git: "git",
  make: "make",
  perl: "perl-base",
} as const satisfies Readonly<Record<string, string>>;

const INSTALLED = {
  // Networks of the tests, and tools to inspect them.
  ip: "iproute2",
  bridge: "iproute2",
  ss: "iproute2",
  tc: "iproute2",
  nft: "nftables",
  ping: "iputils-ping",
  curl: "curl",
  dnsmasq: "dnsmasq-base",
  iperf3: "iperf3",
  bird: "bird2",
  birdc: "bird2",
  // Upstream's portmap, a peer, uses iptables.
  iptables: "iptables",
  "iptables-legacy": "iptables",
  "iptables-legacy-restore": "iptables",
  "iptables-legacy-save": "iptables",
  "iptables-nft-restore": "iptables",
  "iptables-nft-save": "iptables",
  // Felix, a peer, uses it.
  ipset: "ipset",

  // Datastores.
  etcd: "etcd-server",
  etcdctl: "etcd-client",
  sqlite3: "sqlite3",
  openssl: "openssl",
  "/etc/ssl/certs/ca-certificates.crt": "ca-certificates",

  // Real clients of the plugin (test/clients): both engines run containers with runc, which works with both cgroup versions.
  podman: "podman",
  containerd: "containerd",
  ctr: "containerd",
  runc: "runc",
  // The root file system of their containers.
  busybox: "busybox-static",
  // Debian's version of the upstream plugins.
  "/usr/lib/cni/host-local": "containernetworking-plugins",

  // Runs the programs of the image for arm64.
  "qemu-aarch64-static": "qemu-user-static",

  // The guests of test/vm: a kernel of Debian with its modules, and the tools of their first steps.
  "qemu-system-x86_64": "qemu-system-x86",
  cpio: "cpio",
  xz: "xz-utils",
  depmod: "kmod",
  modprobe: "kmod",
  ipvsadm: "ipvsadm",
  "mkfs.ext4": "e2fsprogs",

  // Looks at the page of the console; makes its pictures small.
  chromium: "chromium",
  pngquant: "pngquant",

  // Evaluates the alert rules.
  prometheus: "prometheus",

  // The shells that completion scripts are tested in.
  zsh: "zsh",
  fish: "fish",

  // The bare machine of `make bare`.
  mmdebstrap: "mmdebstrap",

  // Processes and system calls.
  kill: "procps",
  ps: "procps",
  strace: "strace",
  python3: "python3-minimal",
  // Download Envoy, and the newer Go that builds test/parts.
  pip3: "python3-pip",
  go: "golang-go",
  systemctl: "systemd",
  "systemd-analyze": "systemd",
  "/usr/include/asm-generic/unistd.h": "linux-libc-dev",
} as const satisfies Readonly<Record<string, string>>;

/** Used if present: firewalld's package starts it, which would change who reaches the machine. */
type NotInstalled = "firewalld" | "firewall-cmd" | "dbus-daemon";

export type Program = keyof typeof ALWAYS_PRESENT | keyof typeof INSTALLED | NotInstalled;

export const PACKAGES: Readonly<Record<string, string>> = { ...ALWAYS_PRESENT, ...INSTALLED };
