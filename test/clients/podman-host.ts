/**
 * A private host for the pages about podman, with a gateway that knows no pod:
 *
 *   gateway 192.0.2.1, .10, .99 ── uplink 192.0.2.2 ── host ── containers
 *
 * The Debian package is in `dist`, and the image that the pages use is imported.
 */
import { join } from "node:path";
import { buildPackage } from "../../scripts/deb/build-package.ts";
import type { Host } from "../support/host.ts";
import { packageRequest } from "../support/package-request.ts";
import { makeRootfs } from "../support/rootfs.ts";

/** What Debian's own packages and a real host would bring: dpkg's records, a /usr to write to, a gateway, an image. */
export async function preparePodmanHost(host: Host): Promise<void> {
  await host.must(["sh", "-ec", OWN_USR_AND_GATEWAY]);
  Bun.spawnSync(["cp", "-a", "/var/lib/dpkg", host.view("/var/lib/dpkg")]);
  host.writeFile("/etc/containers/containers.conf.d/10-test.conf", PODMAN_SETTINGS);
  host.writeFile("/usr/local/bin/podman", podmanInCgroup(host.name));
  const folder = join(host.directory, "dist");
  await host.must(["sh", "-ec", `chmod 755 /usr/local/bin/podman; mkdir ${folder}`]);
  await buildPackage(packageRequest(host.view(folder)));
  const archive = join(host.directory, "image.tar");
  await host.must(["tar", "--numeric-owner", "-C", makeRootfs(host), "-cf", archive, "."]);
  await host.must(["podman", "import", archive, "docker.io/library/busybox:latest"]);
}

const OWN_USR_AND_GATEWAY = `
mkdir -p /run/usr/upper /run/usr/work
mount -t overlay vt -o lowerdir=/usr,upperdir=/run/usr/upper,workdir=/run/usr/work /usr
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
