/**
 * The control files of the Debian package. Pure.
 *
 * The agent's unit is handled by the two programs that every Debian has for it
 * (init-system-helpers): they remember what the administrator has disabled, and
 * a host or chroot without systemd is left alone.
 */
import { basename, join } from "node:path";
import { ownTables } from "../../src/agent/node-setup/remove-network.ts";
import { KEEP_FILES, UNINSTALL } from "../../src/bin/node-arguments.ts";
import type { Identity } from "../../src/identity.ts";
import type { Entry } from "../install/layout.ts";

export interface Package {
  readonly names: Identity;
  /** Without the "v" of a release. */
  readonly version: string;
  readonly architecture: string;
  readonly maintainer: string;
  readonly layout: readonly Entry[];
  /** Bytes of all files. */
  readonly size: number;
}

/** The oldest C library that the pinned Bun runs with. */
const C_LIBRARY = "libc6 (>= 2.17)";

/** The files of the folder DEBIAN, with their content. The scripts among them are those that begin with "#!". */
export function controlFiles(packaged: Package): Readonly<Record<string, string>> {
  return {
    control: controlFile(packaged),
    conffiles: pathsOf(packaged, "configuration")
      .map((path) => `${path}\n`)
      .join(""),
    preinst: preinst(packaged),
    postinst: postinst(packaged),
    prerm: prerm(packaged),
    postrm: postrm(packaged.names),
  };
}

function controlFile({ names, version, architecture, maintainer, size }: Package): string {
  return `Package: ${names.product}
Version: ${version}
Architecture: ${architecture}
Maintainer: ${maintainer}
Installed-Size: ${Math.ceil(size / 1024)}
Depends: ${C_LIBRARY}
Suggests: bird2, podman | containerd
Section: net
Priority: optional
Description: container network for Linux hosts and Kubernetes clusters
 A CNI plugin with address management, host ports and shaping (${names.product}, ${names.ipamType},
 host-local, portmap, bandwidth), the node agent ${names.nodeAgent} and the admin tool
 ${names.adminTool}: one executable, which talks to the kernel over netlink.
 .
 No network is switched on by the installation: copy one of the example network
 configs in /usr/share/${names.product} to /etc/cni/net.d.
`;
}

/** dpkg refuses to overwrite files of another package, but it silently overwrites files that belong to no package. */
function preinst(packaged: Package): string {
  const paths = packaged.layout.filter(({ kind }) => kind === "executable" || kind === "link").map(({ path }) => path);
  return `#!/bin/sh
set -e
if [ "$1" = install ]; then
  for path in ${paths.join(" ")}; do
    if [ ! -e "$path" ] && [ ! -L "$path" ]; then continue; fi
    if dpkg-query --search "$path" >/dev/null 2>&1; then continue; fi
    echo "${packaged.names.product}: $path exists and belongs to no package: move it away (\\"make uninstall\\" if \\"make install\\" wrote it)" >&2
    exit 1
  done
fi
`;
}

function postinst(packaged: Package): string {
  const unit = `${packaged.names.nodeAgent}.service`;
  const [executable = ""] = pathsOf(packaged, "executable");
  return `#!/bin/sh
set -e
if [ "$1" != configure ] && [ "$1" != abort-upgrade ] && [ "$1" != abort-deconfigure ] && [ "$1" != abort-remove ]; then
  exit 0
fi
if [ -u ${executable} ] || [ -g ${executable} ]; then
  echo "${packaged.names.product}: ${executable} has a setuid or setgid bit, with which any user could act as another: remove it (see dpkg-statoverride --list)" >&2
  exit 1
fi
deb-systemd-helper unmask ${unit} >/dev/null || true
if deb-systemd-helper --quiet was-enabled ${unit}; then
  deb-systemd-helper enable ${unit} >/dev/null || true
else
  deb-systemd-helper update-state ${unit} >/dev/null || true
fi
if [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload >/dev/null || true
  if [ -n "$2" ]; then action=restart; else action=start; fi
  deb-systemd-invoke $action ${unit} >/dev/null || true
fi
`;
}

/**
 * An upgrade restarts the agent once the new one is there; meanwhile the old one serves. A removal says who uses the
 * network, and goes on: it may not ask. In a chroot the network is that of another host.
 */
function prerm({ names, layout }: Package): string {
  const { product, nodeAgent } = names;
  const program = layout.find(({ kind, path }) => kind === "link" && basename(path) === nodeAgent)?.path;
  return `#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  deb-systemd-invoke stop ${nodeAgent}.service >/dev/null || true
fi
if [ "$1" = remove ] && ! ischroot 2>/dev/null; then
  if ! ${program} ${UNINSTALL} ${KEEP_FILES}; then
    echo "${product}: the nftables tables, routes and tunnels of the network are left; once no container uses it, \\"dpkg --purge ${product}\\" removes them" >&2
  fi
fi
`;
}

/**
 * The datastore and the log stay until the purge, and while a container has an address of it. The run directory is there
 * only if prerm could not remove the network: then nft and ip do it, as the product's programs are gone.
 */
function postrm(names: Identity): string {
  const { product, nodeAgent, interfacePrefix, stateDirectory, logDirectory, runDirectory } = names;
  const unit = `${nodeAgent}.service`;
  return `#!/bin/sh
set -e
# dpkg removes directories that no other package has, and no package has this one.
if [ "$1" = remove ]; then mkdir -p /opt; fi
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload >/dev/null || true
fi
if [ "$1" != purge ]; then exit 0; fi
if [ -x /usr/bin/deb-systemd-helper ]; then
  deb-systemd-helper purge ${unit} >/dev/null || true
  deb-systemd-helper unmask ${unit} >/dev/null || true
fi
if [ -e ${stateDirectory}/installed.json ]; then
  echo "${product}: ${stateDirectory}, ${logDirectory} and the network are left: a cluster has installed them on this node" >&2
  exit 0
fi
rm -rf ${logDirectory}
if ! ischroot 2>/dev/null; then
  users=$(sed -n 's/^ *\\(${interfacePrefix}[^:]*\\):.*/\\1/p' /proc/net/dev)
  for record in ${runDirectory}/host-ports/*; do
    if [ ! -f "$record" ]; then continue; fi
    namespace=$(sed -n 's/.*"netns":"netns [^ ]* [^ ]* \\([^"]*\\)".*/\\1/p' "$record")
    if [ -e "$namespace" ]; then users="$users $namespace"; fi
  done
  if [ -n "$users" ]; then
    echo "${product}: containers still use the network ($(echo $users)): ${stateDirectory}, ${runDirectory} and nftables tables are left; remove the containers, then these, or restart the host" >&2
    exit 0
  fi
  if [ -e ${runDirectory} ]; then
    if command -v nft >/dev/null; then
      for table in ${tablesOf(names).join(" ")}; do
        nft delete table "\${table%%:*}" "\${table#*:}" 2>/dev/null || true
      done
    else
      echo "${product}: nftables tables may be left until the host is restarted: there is no nft to delete them" >&2
    fi
    for device in ${names.vxlanDevice} ${names.vxlanDeviceIpv6}; do
      ip link delete $device 2>/dev/null || true
    done
  fi
  rm -rf ${runDirectory}
fi
rm -rf ${stateDirectory}
`;
}

/** Each as `family:name`. */
function tablesOf(names: Identity): readonly string[] {
  return ownTables(names).map(({ family, name }) => `${family}:${name}`);
}

function pathsOf({ layout }: Package, kind: Entry["kind"]): readonly string[] {
  return layout.filter((entry) => entry.kind === kind).map(({ path }) => join("/", path));
}
