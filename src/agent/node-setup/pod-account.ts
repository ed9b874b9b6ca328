/**
 * The account of the pod that the agent runs in, for everything that the agent does itself; the calls that it serves
 * use the account of the network config, as plugins do.
 *
 * It is a kubeconfig beside the agent's socket that names the files of the container, which the kubelet renews. It has
 * no secret in it. So the commands of the admin tool that the agent runs can use it too.
 */

import { existsSync } from "node:fs";
import type { Environment } from "../../cni/environment.ts";
import { agentDirectory } from "../../config/run-directory.ts";
import { identity } from "../../identity.ts";
import { SERVICE_ACCOUNT_DIRECTORY } from "../../kube/connection.ts";
import { serverFromEnvironment } from "../../kube/server-from-environment.ts";
import { replaceFile } from "../../linux/replace-file.ts";
import { pathInContainer } from "./container-root.ts";

/** Returns the path of the kubeconfig; `undefined` outside a pod, and in a pod without an account. */
export function writePodKubeconfig(environment: Environment): string | undefined {
  const server = serverFromEnvironment(environment);
  const directory = pathInContainer(environment, SERVICE_ACCOUNT_DIRECTORY);
  if (server === undefined || directory === undefined || !existsSync(`${directory}/token`)) return undefined;
  const path = `${agentDirectory(environment)}/kubeconfig`;
  replaceFile(path, `${JSON.stringify(kubeconfigOf(server, directory), undefined, 2)}\n`);
  return path;
}

function kubeconfigOf(server: string, directory: string) {
  const name = identity.nodeAgent;
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server, "certificate-authority": `${directory}/ca.crt` } }],
    users: [{ name, user: { tokenFile: `${directory}/token` } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    "current-context": name,
  };
}
