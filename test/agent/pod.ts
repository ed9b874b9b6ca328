/**
 * The node agent as in a pod: its mount and UTS namespace are its own, and with
 * "own processes" its PID namespace, too. Of the folders that plugins use it sees
 * none of the host's, its program is at a path that does not exist on the host,
 * and the path of the host's programs is empty.
 */
import { identity } from "../../src/identity.ts";
import { type AgentOptions, BIN } from "./agent.ts";

const IMAGE = "/opt/image";
const HOST_PROC = "/opt/host/proc";

const PROCESSES = {
  "host's processes": { unshare: [], mount: ":", namespaces: "/proc/1/ns" },
  "own processes": {
    unshare: ["--pid", "--fork", "--kill-child"],
    mount: `mkdir -p ${HOST_PROC}; mount --rbind /proc ${HOST_PROC}; mount -t proc pod /proc`,
    namespaces: `${HOST_PROC}/1/ns`,
  },
};

export interface PodOptions {
  /** Absent: where they are. `undefined`: the agent is not told. */
  readonly hostNamespaces?: string | undefined;
  /** Folders of the host that are mounted at the same place. */
  readonly hostFolders?: readonly string[];
}

export function podOptions(processes: keyof typeof PROCESSES, options: PodOptions = {}): AgentOptions {
  const { unshare, mount, namespaces } = PROCESSES[processes];
  const { hostNamespaces, hostFolders = [] } = { hostNamespaces: namespaces, ...options };
  const script = `
set -e
hostname vt-agent-pod
mount -t tmpfs pod /opt
mkdir -p ${IMAGE}
mount --bind ${BIN} ${IMAGE}
mount -t tmpfs pod ${BIN}
${hostFolders.map((folder, index) => `mkdir -p /opt/folder-${index} ${folder}; mount --bind ${folder} /opt/folder-${index}`).join("\n")}
for folder in /run /var/lib /var/log /tmp; do mount -t tmpfs pod $folder; done
${hostFolders.map((folder, index) => `mkdir -p ${folder}; mount --bind /opt/folder-${index} ${folder}`).join("\n")}
${mount}
exec "$@"
`;
  return {
    under: ["unshare", "--mount", "--propagation", "private", "--uts", ...unshare, "sh", "-c", script, "sh"],
    program: `${IMAGE}/${identity.nodeAgent}`,
    args: hostNamespaces === undefined ? [] : ["--host-namespaces", hostNamespaces],
  };
}
