/** The commands in dist/cluster/bin, which run in the kept cluster, from any shell of root, and what is printed about them. */
import { chmodSync, mkdirSync, readlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { identity } from "../../src/identity.ts";
import type { Host } from "../../test/support/host.ts";
import { kubeProgram } from "../../test/support/kube-apiserver.ts";
import { AGNHOST_IMAGE } from "../../test/support/kube-images.ts";
import { ADMIN_TOOL, type ClusterEnvironment } from "./environment.ts";
import { BIN, TEMPORARY } from "./state.ts";

const NODE_PATH = `${dirname(ADMIN_TOOL)}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`;

export function writeCommands({ cluster, nodes, settings }: ClusterEnvironment): void {
  mkdirSync(BIN, { recursive: true, mode: 0o755 });
  const { host } = cluster;
  const environment = Object.entries(settings).map((each) => each.join("="));
  // Only the network is the cluster's: files are those of the machine.
  const kubectl = [
    `KUBECONFIG=${settings["KUBECONFIG"]}`,
    `KUBECACHEDIR=${join(TEMPORARY, "kubectl-cache")}`,
    kubeProgram("kubectl"),
  ];
  writeCommand("kubectl", host, `${words(["nsenter", `--net=${host.netns}`, "--", "env", ...kubectl])} "$@"`);
  // It also reads files of its host, which must not be the machine's.
  writeCommand(identity.adminTool, host, `${inDirectory(host)} ${words(["env", ...environment, ADMIN_TOOL])} "$@"`);
  for (const node of nodes) {
    writeCommand(node.name, node.host, `${inDirectory(node.host)} ${words(["env", `PATH=${NODE_PATH}`])} "\${@:-sh}"`);
  }
}

/** A mount namespace is entered at its root. */
function inDirectory({ enter }: Host): string {
  return `${words([...enter, "sh", "-c", 'cd "$0" && exec "$@"'])} "$PWD"`;
}

/** The number of the host's first process may be another's later. */
function writeCommand(name: string, { netns }: Host, command: string): void {
  const path = join(BIN, name);
  const script = `#!/bin/bash
# Written by make cluster, for as long as the cluster runs.
[ "$(id -u)" = 0 ] || { echo "${name}: only root may enter the cluster" >&2; exit 1; }
[ "$(readlink ${netns})" = "${readlinkSync(netns)}" ] || { echo "${name}: the cluster does not run any more: make cluster" >&2; exit 1; }
exec ${command}
`;
  writeFileSync(path, script);
  chmodSync(path, 0o755);
}

/** For a shell. */
function words(command: readonly string[]): string {
  return command.map((word) => (/^[\w./:=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}

/** For the person who started it. The indented lines can be typed as they are. */
export function howToUse(): string {
  const pod = (name: string) =>
    `  kubectl run ${name} --image=${AGNHOST_IMAGE} --image-pull-policy=Never -- netexec --http-port=80`;
  return `In any shell of root:

  export PATH=${words([BIN])}:$PATH
  kubectl get pods --all-namespaces
  ${identity.adminTool} status
  node-1 ip route
${pod("web")}

Pods have agnhost and busybox; no other image can be pulled. make cluster again puts changed code onto the nodes,
make cluster-down removes everything.`;
}
