/**
 * A private host for the pages about podman, with a gateway that knows no pod:
 *
 *   gateway 192.0.2.1, .10, .99 ── uplink 192.0.2.2 ── host ── containers
 *
 * The Debian package is in `dist`, and the image that the pages use is imported. There is a service manager that does what the
 * package asks systemd for, so that the agent runs from the installation on.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { buildPackage } from "../../scripts/deb/build-package.ts";
import { identity } from "../../src/identity.ts";
import type { Host } from "../support/host.ts";
import { packageRequest } from "../support/package-request.ts";
import { pollUntil } from "../support/poll.ts";
import { makeRootfs } from "../support/rootfs.ts";

/** What Debian's own packages and a real host would bring: dpkg's records, a /usr to write to, a gateway, an image. */
export async function preparePodmanHost(host: Host): Promise<void> {
  await host.must(["sh", "-ec", OWN_USR_AND_GATEWAY]);
  Bun.spawnSync(["cp", "-a", "/var/lib/dpkg", host.view("/var/lib/dpkg")]);
  host.writeFile("/etc/containers/containers.conf.d/10-test.conf", PODMAN_SETTINGS);
  host.writeFile("/usr/local/bin/podman", podmanInCgroup(host.name));
  host.writeFile("/usr/local/bin/systemctl", SERVICE_MANAGER);
  const folder = join(host.directory, "dist");
  await host.must([
    "sh",
    "-ec",
    `chmod 755 /usr/local/bin/podman /usr/local/bin/systemctl; mkdir -p ${folder} /run/systemd/system`,
  ]);
  await buildPackage(packageRequest(host.view(folder)));
  const archive = join(host.directory, "image.tar");
  await host.must(["tar", "--numeric-owner", "-C", makeRootfs(host), "-cf", archive, "."]);
  await host.must(["podman", "import", archive, "docker.io/library/busybox:latest"]);
}

/** The agent that the package has started serves calls. */
export async function agentServes(host: Host): Promise<void> {
  const log = host.view(AGENT_LOG);
  await pollUntil(
    () => existsSync(log) && readFileSync(log, "utf8").includes("serves the plugins' calls"),
    "the agent of the package to serve",
  );
}

export async function isAgentRunning(host: Host): Promise<boolean> {
  return (await host.run(["systemctl", "is-active", identity.nodeAgent])).code === 0;
}

const AGENT_LOG = "/run/agent-of-package.log";

/** What the package asks systemd for, for its one unit. */
const SERVICE_MANAGER = `#!/bin/sh
unit=/usr/lib/systemd/system/${identity.nodeAgent}.service
pid=/run/agent-of-package.pid
setting() { sed -n "s/^$1=//p" $unit; }
is_active() { [ -e $pid ] && kill -0 $(cat $pid) 2>/dev/null; }
for word in "$@"; do
  case "$word" in
    daemon-reload) exit 0 ;;
    is-enabled) echo enabled; exit 0 ;;
    is-active) is_active; exit ;;
    start)
      setsid env $(setting Environment) $(setting ExecStart) </dev/null >${AGENT_LOG} 2>&1 &
      echo $! >$pid
      exit 0 ;;
    stop)
      if is_active; then kill $(cat $pid); fi
      while is_active; do sleep 0.1; done
      rm -f $pid
      exit 0 ;;
  esac
done
echo "systemctl $*: not expected" >&2
exit 1
`;

const OWN_USR_AND_GATEWAY = `
mkdir -p /run/usr/upper /run/usr/work
mount -t overlay vt -o lowerdir=/usr,upperdir=/run/usr/upper,workdir=/run/usr/work /usr
rm -f /usr/sbin/policy-rc.d
ip netns add gateway
ip link add uplink type veth peer name eth0 netns gateway
ip addr add 192.0.2.2/24 dev uplink
ip link set uplink up
for address in 192.0.2.1 192.0.2.10 192.0.2.99; do ip -n gateway addr add $address/24 dev eth0; done
ip -n gateway link set eth0 up
ip route add default via 192.0.2.1
`;

/** Limits that fit hosts which may not raise theirs; crun refuses hosts with both cgroup versions. */
const PODMAN_SETTINGS = `
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
`;

/** Puts containers into the host's cgroup, which is removed with it. */
function podmanInCgroup(name: string): string {
  return `#!/bin/sh
if [ "$1" = run ]; then shift; set -- run --cgroup-parent /${name} "$@"; fi
exec /usr/bin/podman "$@"
`;
}
