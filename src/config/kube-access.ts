/** How a config says to reach the orchestrator's API. Pure: `src/kube` reads the files and opens connections. */
import type { NetworkConfig } from "./network-config.ts";
import type { ConfigProblem } from "./problem.ts";

/** What is given here takes precedence over the same setting of the kubeconfig. */
export interface KubeAccess {
  /** The first file with a setting wins, as in kubectl's KUBECONFIG. */
  readonly kubeconfigs?: readonly string[];
  /** The context of the kubeconfigs; absent: their current one. */
  readonly context?: string;
  /** URL of the API. Without a kubeconfig, the token and the CA of the pod are used if there are any. */
  readonly apiRoot?: string;
  readonly token?: string;
  readonly clientCertificateFile?: string;
  readonly clientKeyFile?: string;
  readonly certificateAuthorityFile?: string;
}

/** `undefined` if the config gives no access and its datastore needs none. */
export function kubeAccess(config: NetworkConfig): KubeAccess | undefined {
  const { kubeconfig, apiRoot, olderFields } = config.kubernetes;
  const server = apiRoot ?? olderFields.apiRoot;
  const isGiven = kubeconfig !== undefined || server !== undefined;
  if (!isGiven && config.datastoreType !== "orchestrator") return undefined;
  const { token, clientCertificateFile, clientKeyFile, certificateAuthorityFile } = olderFields;
  return {
    ...(kubeconfig === undefined ? {} : { kubeconfigs: [kubeconfig] }),
    ...(server === undefined ? {} : { apiRoot: withoutApiPath(server) }),
    ...(token === undefined ? {} : { token }),
    ...(clientCertificateFile === undefined ? {} : { clientCertificateFile }),
    ...(clientKeyFile === undefined ? {} : { clientKeyFile }),
    ...(certificateAuthorityFile === undefined ? {} : { certificateAuthorityFile }),
  };
}

/**
 * Why the config cannot serve pods: `policy.type` enforces policy for them, and only the orchestrator's API has the
 * labels that policies select them by. Containers without a pod need no API.
 */
export function policyAccessProblem(config: NetworkConfig): ConfigProblem | undefined {
  if (config.policyType === undefined || kubeAccess(config) !== undefined) return undefined;
  const state = "without access to the Kubernetes API the labels of pods are unknown, and policies would miss them";
  const remedy = 'set "kubernetes.kubeconfig" or "kubernetes.k8s_api_root", or remove "policy.type"';
  return { path: ["policy", "type"], message: `"policy.type" is "${config.policyType}": ${state}; ${remedy}` };
}

/** Older configs write `https://host:6443/api/v1/`: what comes before `/api/` is the root. */
function withoutApiPath(url: string): string {
  return url.replace(/\/api(?:\/.*)?$/, "").replace(/\/+$/, "");
}
