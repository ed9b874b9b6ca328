/** Where the node agent finds the kubelet of its node: what is written into the DaemonSet is what the agent reads. */
import { identity } from "../identity.ts";

/** The environment variable of the agent. */
export const KUBELET_DIRECTORY = `${identity.environmentPrefix}KUBELET_DIRECTORY`;

export const DEFAULT_KUBELET_DIRECTORY = "/var/lib/kubelet";

/** In place of a directory: the agent serves no CSI driver. */
export const NO_KUBELET = "None";
