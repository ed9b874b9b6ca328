/**
 * The node agent as in a pod: it has its own mount and UTS namespaces, and with
 * "own processes" also its own PID namespace. It does not see the host's directories
 * that plugins use, its program is at a path that does not exist on the host, and
 * the directory of the host's programs is empty.
 */
import { dirname } from "node:path";
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
  /** Absent: the right directory. `undefined`: without the option. */
  readonly hostNamespaces?: string | undefined;
  /** Directories of the host that are mounted at the same path. */
  readonly hostFolders?: readonly string[];
  /** Files of the container, by their paths. */
  readonly files?: Readonly<Record<string, string>>;
  /** Arguments before the option. */
  readonly command?: readonly string[];
}

export function podOptions(processes: keyof typeof PROCESSES, options: PodOptions = {}): AgentOptions {
  const { unshare, mount, namespaces } = PROCESSES[processes];
  const { hostNamespaces, hostFolders = [], files = {}, command = [] } = { hostNamespaces: namespaces, ...options };
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
${Object.entries(files).map(writeFile).join("\n")}
${mount}
exec "$@"
`;
  return {
    under: ["unshare", "--mount", "--propagation", "private", "--uts", ...unshare, "sh", "-c", script, "sh"],
    program: `${IMAGE}/${identity.nodeAgent}`,
    args: [...command, ...(hostNamespaces === undefined ? [] : ["--host-namespaces", hostNamespaces])],
  };
}

function writeFile([path, text]: readonly [string, string]): string {
  return `mkdir -p ${dirname(path)}; printf %s '${text.replaceAll("'", "'\\''")}' > ${path}`;
}
