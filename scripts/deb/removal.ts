/**
 * The maintainer scripts that run when the package is removed. Pure.
 *
 * `dpkg -r`: prerm removes the network by our own program. If containers use it, prerm refuses, before anything is changed:
 * without the plugin they could neither be restarted nor removed cleanly; FORCE=1 overrides, as for `make uninstall`.
 * `dpkg -P`, which may be much later: postrm removes files, and whatever of the network is left by nft and ip, as our programs
 * are gone. Both leave alone what belongs to another installation. Nothing else fails: that would stop apt in the middle of
 * other packages.
 */
import { ownTables } from "../../src/agent/node-setup/remove-network.ts";
import { EXIT_IN_USE, KEEP_FILES, UNINSTALL } from "../../src/bin/node-arguments.ts";
import { hostPortsFolder } from "../../src/chained/portmap/record-file.ts";
import { agentLockPath } from "../../src/config/run-directory.ts";
import type { Identity } from "../../src/identity.ts";
import { ROUTE_PROTOCOL } from "../../src/linux/rtnetlink/route.ts";
import { birdFiles } from "../../src/routing/bird/bird-files.ts";

/** Where the network is that of another host: in a chroot, and where nothing tells whether it is one. */
const IN_CHROOT = "ischroot -t 2>/dev/null";

/** For BIRD to end, in tenths of a second. */
const END_TENTHS = 50;

/** `agent`: the path of the installed program. An upgrade restarts the agent later; until then the old one serves. */
export function prerm(names: Identity, agent: string): string {
  const { product, nodeAgent, stateDirectory } = names;
  return `#!/bin/sh
set -e
unset ${runDirectoryVariable(names)}
if [ "$1" != remove ]; then exit 0; fi
stop_agent() {
  if [ -d /run/systemd/system ]; then
    deb-systemd-invoke stop ${nodeAgent}.service >/dev/null || true
  fi
}
if ${IN_CHROOT}; then
  stop_agent
  exit 0
fi
if [ -e ${stateDirectory}/installed.json ]; then
  stop_agent
  echo "${product}: the network is left: a cluster has installed it on this node" >&2
  exit 0
fi
remove_network() {
  code=0
  said=$(${agent} ${UNINSTALL} ${KEEP_FILES} 2>&1) || code=$?
  if [ $code -ne ${EXIT_IN_USE} ] || [ "$FORCE" = 1 ]; then return 0; fi
  echo "$said" >&2
  echo "${product}: not removed, since these containers would lose their plugin: remove them first (podman rm), or FORCE=1 dpkg --remove ${product}" >&2
  exit 1
}
# The agent is not stopped for nothing: the program names containers although it runs.
remove_network
stop_agent
if [ $code -ne 0 ]; then remove_network; fi
if [ -n "$said" ]; then echo "$said" >&2; fi
if [ $code -ne 0 ]; then
  echo "${product}: the nftables tables, routes and tunnels of the network are left; once no container uses it, \\"dpkg --purge ${product}\\" removes them, or restart the host" >&2
fi
`;
}

/** The datastore stays while a container has an address of it. */
export function postrm(names: Identity, agent: string): string {
  const { product, nodeAgent, stateDirectory, logDirectory, runDirectory } = names;
  const unit = `${nodeAgent}.service`;
  return `#!/bin/sh
set -e
unset ${runDirectoryVariable(names)}
# dpkg removes directories that no other package has, and no package has this one.
if [ "$1" = remove ]; then mkdir -p /opt; fi
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload >/dev/null || true
fi
if [ "$1" != purge ]; then exit 0; fi
${owner(names, agent)}
# A unit of the same name may be enabled for another installation.
if [ -x /usr/bin/deb-systemd-helper ] && { [ -z "$owner" ] || [ -e ${stateDirectory}/installed.json ]; }; then
  deb-systemd-helper purge ${unit} >/dev/null || true
  deb-systemd-helper unmask ${unit} >/dev/null || true
fi
if [ -n "$owner" ]; then
  echo "${product}: ${stateDirectory}, ${logDirectory}, ${runDirectory} and the network are left: $owner" >&2
  exit 0
fi
# A mount point is emptied, and stays.
remove() {
  if [ ! -e "$1" ] && [ ! -L "$1" ]; then return 0; fi
  find "$1" -mindepth 1 -xdev -delete 2>/dev/null || true
  rmdir "$1" 2>/dev/null || echo "${product}: $1 is left: it cannot be deleted, as a mount point or a link to another directory cannot" >&2
}
remove ${logDirectory}
if ! ${IN_CHROOT}; then
${networkUsers(names)}
  if [ -e ${runDirectory} ]; then
${removeNetwork(names)}
  fi
  remove ${runDirectory}
fi
remove ${stateDirectory}
`;
}

function runDirectoryVariable({ environmentPrefix }: Identity): string {
  return `${environmentPrefix}RUN_DIRECTORY`;
}

/** Sets `owner`: why what is on this host is not of this package, which has no program any more. */
function owner(names: Identity, agent: string): string {
  const { stateDirectory, runDirectory } = names;
  const lock = agentLockPath({ [runDirectoryVariable(names)]: runDirectory });
  return `owner=
if [ -e ${stateDirectory}/installed.json ]; then
  owner="a cluster has installed them on this node"
elif [ -e ${agent} ] || [ -L ${agent} ]; then
  owner="${agent} is of another installation; \\"make uninstall\\" removes one of \\"make install\\""
elif [ -e ${lock} ] && ! flock --nonblock ${lock} true; then
  owner="an agent of another installation runs (${lock} is locked)"
fi`;
}

/**
 * As the program finds them (running-owners.ts): a record that cannot be read counts. The alias of a link, and the owner of
 * host ports, have the ID of the container; podman knows its name. Its warnings that the plugin is gone are not of interest.
 */
function networkUsers(names: Identity): string {
  const { product, interfacePrefix, stateDirectory, runDirectory } = names;
  return `  users=
  add_user() {
    id=$(echo "$1" | sed -n 's|^[^/]*/\\([^/]*\\)/[^/]*$|\\1|p' | cut -c 1-12)
    name=
    if [ -n "$id" ] && command -v podman >/dev/null; then
      name=$(podman inspect --type container --format '{{.Name}}' "$id" 2>/dev/null || true)
    fi
    name=\${name:-\${id:-$2}}
    case " $users " in *" $name "*) ;; *) users="\${users:+$users }$name" ;; esac
  }
  for link in $(sed -n 's/^ *\\(${interfacePrefix}[^:]*\\):.*/\\1/p' /proc/net/dev 2>/dev/null || true); do
    add_user "$(cat "/sys/class/net/$link/ifalias" 2>/dev/null || true)" "$link"
  done
  for record in ${hostPortsFolder(runDirectory)}/*; do
    if [ ! -e "$record" ]; then continue; fi
    namespace=$(sed -n 's/.*"netns":"netns [^ ]* [^ ]* \\([^"]*\\)".*/\\1/p' "$record" 2>/dev/null || true)
    owner=$(sed -n 's/.*"owner":"\\([^"]*\\)".*/\\1/p' "$record" 2>/dev/null || true)
    if [ -z "$namespace" ]; then add_user "" "$record"; fi
    if [ -e "$namespace" ]; then add_user "$owner" "$namespace"; fi
  done
  if [ -n "$users" ]; then
    echo "${product}: containers still use the network ($users): ${stateDirectory}, ${runDirectory}, routes and nftables tables are left; remove these containers, then run:" >&2
${remainingCommands(names)}
    exit 0
  fi`;
}

/** What is left for the administrator to type: only of what is there. */
function remainingCommands(names: Identity): string {
  const { vxlanDevice, vxlanDeviceIpv6, stateDirectory, runDirectory } = names;
  const tables = ownTables(names).map(({ family, name }) => `${family}:${name}`);
  return `    for family in -4 -6; do
      echo "  ip $family route flush table all proto ${ROUTE_PROTOCOL.own}" >&2
    done
    for device in ${vxlanDevice} ${vxlanDeviceIpv6}; do
      if [ -e /sys/class/net/$device ]; then echo "  ip link delete $device" >&2; fi
    done
    for table in ${tables.join(" ")}; do
      if nft list table "\${table%%:*}" "\${table#*:}" >/dev/null 2>&1; then
        echo "  nft delete table \${table%%:*} \${table#*:}" >&2
      fi
    done
    echo "  rm -r ${runDirectory} ${stateDirectory}" >&2`;
}

/**
 * BIRD ends first, or it would write its routes again. It leaves them in the kernel, and they are removed only if no other
 * BIRD runs, which may have its own. The device tunl0 belongs to the kernel: it is only closed.
 */
function removeNetwork(names: Identity): string {
  const { product, nodeAgent, vxlanDevice, vxlanDeviceIpv6, runDirectory } = names;
  const { own, bird } = ROUTE_PROTOCOL;
  const { pid } = birdFiles(runDirectory);
  const tables = ownTables(names).map(({ family, name }) => `${family}:${name}`);
  return `    protocols=${own}
    bird=$(cat ${pid} 2>/dev/null || true)
    is_bird() { [ "$(cat "/proc/$1/comm" 2>/dev/null || true)" = bird ]; }
    if [ -n "$bird" ]; then
      tenths=0
      if is_bird "$bird"; then kill "$bird" 2>/dev/null || true; fi
      while is_bird "$bird" && [ $tenths -lt ${END_TENTHS} ]; do
        sleep 0.1
        tenths=$((tenths + 1))
      done
      if grep --quiet --no-messages --line-regexp bird /proc/[0-9]*/comm; then
        echo "${product}: routes of BIRD may be left until the host is restarted: another BIRD runs, or it did not end" >&2
      else
        protocols="${own} ${bird}"
      fi
    fi
    if command -v ip >/dev/null; then
      for protocol in $protocols; do
        ip -4 route flush table all proto $protocol 2>/dev/null || true
        ip -6 route flush table all proto $protocol 2>/dev/null || true
      done
      for device in ${vxlanDevice} ${vxlanDeviceIpv6}; do
        ip link delete $device type vxlan 2>/dev/null || true
      done
      case "$(cat /sys/class/net/tunl0/ifalias 2>/dev/null || true)" in ${nodeAgent}|"${nodeAgent} "*)
        ip address flush dev tunl0 scope global 2>/dev/null || true
        ip link set dev tunl0 down alias "" 2>/dev/null || true ;;
      esac
    else
      echo "${product}: routes and tunnels may be left until the host is restarted: there is no ip to delete them" >&2
    fi
    if command -v nft >/dev/null; then
      for table in ${tables.join(" ")}; do
        nft delete table "\${table%%:*}" "\${table#*:}" 2>/dev/null || true
      done
    else
      echo "${product}: nftables tables may be left until the host is restarted: there is no nft to delete them" >&2
    fi`;
}
