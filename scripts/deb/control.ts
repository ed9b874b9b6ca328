/**
 * The control files of the Debian package. Pure.
 *
 * The agent's unit is handled by the two programs that every Debian has for it
 * (init-system-helpers): they remember what the administrator has disabled, and
 * a host or chroot without systemd is left alone.
 */
import { basename, join } from "node:path";
import type { Identity } from "../../src/identity.ts";
import type { Entry } from "../install/layout.ts";
import { postrm, prerm } from "./removal.ts";

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
    prerm: prerm(packaged.names, agentIn(packaged)),
    postrm: postrm(packaged.names, agentIn(packaged)),
  };
}

/** In the directory of plugins, which is the first place. */
function agentIn({ names, layout }: Package): string {
  const agent = layout.find(({ kind, path }) => kind === "link" && basename(path) === names.nodeAgent);
  if (agent === undefined) throw new Error(`The package has no link "${names.nodeAgent}"`);
  return agent.path;
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

/** Of no consequence if they are overwritten: documents, manual pages, completion. */
const REPLACEABLE = ["doc", "man", "bash-completion", "zsh", "fish"].map((folder) => `/usr/share/${folder}/`);

/** dpkg refuses to overwrite files of another package, but it silently overwrites files that belong to no package. */
function preinst(packaged: Package): string {
  const paths = packaged.layout
    .filter(({ kind, path }) => kind !== "configuration" && !REPLACEABLE.some((folder) => path.startsWith(folder)))
    .map(({ path }) => path);
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

function pathsOf({ layout }: Package, kind: Entry["kind"]): readonly string[] {
  return layout.filter((entry) => entry.kind === kind).map(({ path }) => join("/", path));
}
