/**
 * The file by which the node agent says that the policy of an endpoint is in the kernel: its name and its content. The
 * agent writes it, and the plugin waits for it. Pure.
 */

/** The endpoint, as both the plugin and the agent know it. */
export interface StatusOwner {
  readonly orchestrator: string;
  readonly namespace: string;
  /** Absent for a container that is not a pod. */
  readonly pod?: string | undefined;
  readonly containerId: string;
  /** The name of the interface in the container. */
  readonly endpoint: string;
}

/** File systems allow 255 bytes. */
const LONGEST_FILE_NAME = 255;
const DIGEST_LENGTH = 43;

/** For example `k8s default%2Fmypod eth0`. A name that is too long for a file ends with its digest. */
export function statusFileName({ orchestrator, namespace, pod, containerId, endpoint }: StatusOwner): string {
  const workload = pod === undefined ? containerId : `${namespace}/${pod}`;
  const name = [orchestrator, workload, endpoint].map(encodeURIComponent).join(" ");
  if (name.length <= LONGEST_FILE_NAME) return name;
  const digest = new Bun.CryptoHasher("sha256").update(name).digest("base64url");
  return `${name.slice(0, LONGEST_FILE_NAME - DIGEST_LENGTH - 1)} ${digest}`;
}

export interface EndpointStatus {
  readonly containerID: string;
  readonly ifaceName: string;
  readonly mac?: string | undefined;
  readonly ipv4Nets: readonly string[];
  readonly ipv6Nets: readonly string[];
}

/** Whether the text is the status of this container: an earlier sandbox of the same pod does not count. */
export function isStatusOf(text: string, containerId: string): boolean {
  try {
    const status: unknown = JSON.parse(text);
    return (
      typeof status === "object" && status !== null && "containerID" in status && status.containerID === containerId
    );
  } catch {
    return false;
  }
}
