/**
 * The control files of the Debian package. Pure.
 *
 * The agent's unit is handled by the two programs that every Debian has for it
 * (init-system-helpers): they remember what the administrator has disabled, and
 * a host or chroot without systemd is left alone.
 */
import { join } from "node:path";
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
    prerm: prerm(packaged.names),
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
  const paths = packaged.layout.filter(({ kind }) => kind !== "configuration").map(({ path }) => path);
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

/** An upgrade restarts the agent once the new one is there; meanwhile the old one serves. */
function prerm({ nodeAgent }: Identity): string {
  return `#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  deb-systemd-invoke stop ${nodeAgent}.service >/dev/null || true
fi
`;
}

/** The datastore and the log stay: containers may still have addresses of it. */
function postrm({ product, nodeAgent, stateDirectory, logDirectory }: Identity): string {
  const unit = `${nodeAgent}.service`;
  return `#!/bin/sh
set -e
# dpkg removes directories that no other package has, and no package has this one.
if [ "$1" = remove ]; then mkdir -p /opt; fi
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload >/dev/null || true
fi
if [ "$1" = purge ]; then
  if [ -x /usr/bin/deb-systemd-helper ]; then
    deb-systemd-helper purge ${unit} >/dev/null || true
    deb-systemd-helper unmask ${unit} >/dev/null || true
  fi
  for directory in ${stateDirectory} ${logDirectory}; do
    if [ -e "$directory" ]; then echo "${product}: $directory is left"; fi
  done
fi
`;
}

function pathsOf({ layout }: Package, kind: Entry["kind"]): readonly string[] {
  return layout.filter((entry) => entry.kind === kind).map(({ path }) => join("/", path));
}
