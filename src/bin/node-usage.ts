/** The help of the node agent, which is also its manual page. Pure. */
import { DEFAULT_POLICY_SYNC_DIRECTORY, POLICY_SYNC_DIRECTORY } from "../config/policy-sync-directory.ts";
import { identity } from "../identity.ts";
import { DEFAULT_KUBELET_DIRECTORY, KUBELET_DIRECTORY, NO_KUBELET } from "../model/kubelet-directory.ts";
import {
  COLLECT_FLOWS,
  EXIT_IN_USE,
  HOST_NAMESPACES,
  INSTALL,
  KEEP_FILES,
  SERVE_CALLS,
  STAY,
  UNINSTALL,
} from "./node-arguments.ts";

export function nodeUsage(): string {
  const { nodeAgent, title, environmentPrefix, runDirectory, csiDriver } = identity;
  return `Usage: ${nodeAgent} [${INSTALL} | ${UNINSTALL} [${STAY}] [${KEEP_FILES}]] [${HOST_NAMESPACES} DIRECTORY] | -v | -h

The node agent of ${title}: enforces network policy on this host, and serves the calls of the CNI plugins, until it is stopped.
If it does not run, the plugins do their work themselves, and the kernel keeps the last rules of the policies.

  ${INSTALL}                       install the plugins and their network config on this node, and end: for the init
                                container of the agent's pod
  ${UNINSTALL}                     remove what was installed, and the tunnels, routes and rules if no pod needs them
  ${KEEP_FILES}                  remove no files, as a package manager does that, but only tunnels, routes, rules and the run
                                directory; if containers use the network, names them and ends with status ${EXIT_IN_USE}
  ${STAY}                        afterwards do not end until stopped, as the pod of a DaemonSet must
  ${HOST_NAMESPACES} DIRECTORY   run in the mount, network and UTS namespaces in this directory, for example
                                /proc/1/ns; needed if the agent runs in a container
  -v                            print the version
  -h, --help                    print this help

Environment:
  ${environmentPrefix}RUN_DIRECTORY          directory of the agent's socket, agent/calls.sock (default ${runDirectory})
  ${KUBELET_DIRECTORY}      directory of the kubelet, where the agent serves the CSI driver ${csiDriver} for the
                                volumes of sidecars (default ${DEFAULT_KUBELET_DIRECTORY}); ${NO_KUBELET}: no driver
  ${POLICY_SYNC_DIRECTORY}  directory of the sockets of sidecars of releases before v3.29
                                (default ${DEFAULT_POLICY_SYNC_DIRECTORY})

Calls are served by a separate process, "${nodeAgent} ${SERVE_CALLS}", which the agent starts and stops. So are flows
collected, by "${nodeAgent} ${COLLECT_FLOWS}", while they are switched on.`;
}
