/** Commands on a whole cluster: which cluster it is, and as whom. */

import type { KubeAccess } from "../../config/kube-access.ts";
import { PluginError } from "../../errors.ts";
import type { KubeClient } from "../../kube/api.ts";
import { type Given, UsageError } from "../main/command.ts";
import type { Call, Cluster } from "../main/context.ts";

/** The same order as that of kubectl: the option, the variable, the account of the pod, the file in the home directory. */
export function clusterAccess(given: Given, env: Call["env"]): KubeAccess {
  const named = given.values.get("kubeconfig");
  const context = given.values.get("context");
  const kubeconfigs = named === undefined ? kubeconfigsOf(env) : [named];
  if (kubeconfigs !== undefined) return { kubeconfigs, ...(context === undefined ? {} : { context }) };
  if (context !== undefined) throw new UsageError('"--context" needs a kubeconfig: add --kubeconfig FILE');
  if (env["KUBERNETES_SERVICE_HOST"]) return {};
  throw new PluginError("config-invalid", "Cannot reach the Kubernetes API: no access to it is configured", {
    details: "name a kubeconfig with --kubeconfig or KUBECONFIG",
  });
}

function kubeconfigsOf(env: Call["env"]): readonly string[] | undefined {
  const files = (env["KUBECONFIG"] ?? "").split(":").filter((file) => file !== "");
  if (files.length > 0) return files;
  return env["KUBERNETES_SERVICE_HOST"] || !env["HOME"] ? undefined : [`${env["HOME"]}/.kube/config`];
}

/** `onHost`: what the user does instead on a host without Kubernetes, in the error if nothing names a cluster. */
export async function withCluster<T>(
  context: Call & Cluster,
  given: Given,
  work: (client: KubeClient) => Promise<T>,
  onHost?: string,
): Promise<T> {
  const client = await openClient(context, given).catch((failure: unknown) => {
    throw onHost === undefined || isNamed(context, given) || !(failure instanceof PluginError)
      ? failure
      : new PluginError(failure.kind, failure.message, {
          details: [failure.details, onHost].filter((text) => text !== "").join("; "),
          cause: failure,
        });
  });
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

async function openClient(context: Call & Cluster, given: Given): Promise<KubeClient> {
  const access = clusterAccess(given, context.env);
  try {
    return await context.openKubeClient(access);
  } catch (failure) {
    if (isNamed(context, given) || access.kubeconfigs === undefined || !(failure instanceof PluginError)) throw failure;
    const { kind, message, details } = failure;
    throw new PluginError(kind, `${message}; use --kubeconfig or set KUBECONFIG`, { details, cause: failure });
  }
}

function isNamed({ env }: Call, { values }: Given): boolean {
  return values.has("kubeconfig") || (env["KUBECONFIG"] ?? "") !== "";
}
