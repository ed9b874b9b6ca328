/**
 * A copy of this host for tests that install into its root: the root is overlaid by a folder in memory, and network and
 * processes are its own, so that nothing is seen outside. `systemctl` starts and stops nothing, but writes it down.
 */
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { BIN_DIRECTORY } from "./network-under-test.ts";

const { product, ipamType, apiGroup, stateDirectory, logDirectory, interfacePrefix, adminTool } = identity;
const REPOSITORY = join(import.meta.dir, "../..");

/**
 * `files`: in the copy's /packages, under these names. A script writes /tmp/fragment for what `systemctl` shall say of the
 * file of a unit, and /tmp/active for a unit that runs.
 */
export function onCopyOfHost(
  script: string,
  files: Readonly<Record<string, string>> = {},
): { readonly code: number; readonly printed: string } {
  const setUp = `set -e
mount -t tmpfs none /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay none -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
mount --rbind /dev /mnt/root/dev
mount -t proc proc /mnt/root/proc
mount -t sysfs none /mnt/root/sys
mount -t tmpfs none /mnt/root/run
mkdir -p /mnt/root${REPOSITORY}
mount --bind ${REPOSITORY} /mnt/root${REPOSITORY}
rm -rf /mnt/root${BIN_DIRECTORY} /mnt/root/etc/cni /mnt/root${stateDirectory} /mnt/root${logDirectory}
mkdir /mnt/root/packages
script="$1"; shift
while [ $# -gt 0 ]; do : >"/mnt/root/packages/$1"; mount --bind "$2" "/mnt/root/packages/$1"; shift 2; done
exec chroot /mnt/root sh -ec "$script" 2>&1
`;
  const prelude = `
cd ${REPOSITORY}
ip link set lo up
rm -f /usr/sbin/policy-rc.d
: >/tmp/asked
rm -f /tmp/fragment /tmp/active
mv /usr/bin/systemctl /usr/bin/systemctl.real
cat >/usr/bin/systemctl <<'end'
#!/bin/sh
if [ -e /tmp/fragment ]; then case "$*" in *FragmentPath*) exec cat /tmp/fragment ;; esac; fi
if [ -e /tmp/active ]; then case "$*" in *is-active*) exit 0 ;; esac; fi
case "$*" in *start*|*stop*|*daemon-reload*) echo "systemctl $*" >>/tmp/asked ;; *) SYSTEMD_OFFLINE=1 exec systemctl.real "$@" ;; esac
end
chmod 755 /usr/bin/systemctl
ours() { find /opt /etc /run /var/lib /var/log /usr/bin /usr/sbin /usr/lib/systemd /usr/share -maxdepth 4 -name '*${product}*' -not -path '/var/lib/dpkg/*' | sort; }
ours >/tmp/before
`;
  const apart = ["unshare", "--mount", "--propagation", "private", "--net", "--pid", "--fork", "--kill-child"];
  const command = [...apart, "sh", "-c", setUp, "sh", `${prelude}${script}`, ...Object.entries(files).flat()];
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { timeout: 100_000 });
  return { code: exitCode, printed: `${stdout}${stderr}` };
}

/**
 * Shell functions for a script there: `switch_on PREFIX` as docs/podman.md does it; `attach NAME PORT` connects a network
 * namespace as podman connects a container of that name, which is not its ID, and publishes a port; `detach NAME PORT`;
 * `end_container NAME`, without a call of a plugin; `tables` lists those of the kernel, `links` counts ours.
 */
export const CONTAINER_COMMANDS = `
switch_on() {
  mkdir -p /etc/cni/net.d
  cp "$1/share/${product}/10-${product}-embedded.conflist" /etc/cni/net.d/
  ${adminTool} datastore init >/dev/null 2>&1
  ${adminTool} node register >/dev/null 2>&1
  echo '{"apiVersion":"${apiGroup}/v3","kind":"IPPool","metadata":{"name":"p"},"spec":{"cidr":"10.66.0.0/24","natOutgoing":true}}' |
    ${adminTool} create -f - >/dev/null 2>&1
}
cni() {
  id=$(printf %s "$2" | sha256sum | cut -c 1-64)
  CNI_COMMAND=$1 CNI_CONTAINERID=$id CNI_NETNS=/run/netns/$2 CNI_IFNAME=eth0 CNI_PATH=${BIN_DIRECTORY} CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAME=$2" ${BIN_DIRECTORY}/$3
}
network='"cniVersion":"1.0.0","name":"pods"'
plugin="{$network,\\"type\\":\\"${product}\\",\\"datastore_type\\":\\"embedded\\",\\"log_file_path\\":\\"${logDirectory}/cni/cni.log\\",\\"ipam\\":{\\"type\\":\\"${ipamType}\\"}}"
ports() { echo "$network,\\"type\\":\\"portmap\\",\\"snat\\":true,\\"runtimeConfig\\":{\\"portMappings\\":[{\\"hostPort\\":$1,\\"containerPort\\":80,\\"protocol\\":\\"tcp\\"}]}"; }
attach() {
  ip netns add $1
  result=$(echo "$plugin" | cni ADD $1 ${product} 2>/dev/null)
  echo "{$(ports $2),\\"prevResult\\":$result}" | cni ADD $1 portmap >/dev/null 2>&1
}
detach() {
  echo "{$(ports $2)}" | cni DEL $1 portmap >/dev/null 2>&1
  echo "$plugin" | cni DEL $1 ${product} >/dev/null 2>&1
  ip netns del $1
}
end_container() {
  before=$(links)
  ip netns del $1
  while [ "$(links)" = "$before" ]; do sleep 0.1; done
}
tables() { nft list tables | sort; }
links() { ip -o link show | grep -c ' ${interfacePrefix}' || true; }
`;
