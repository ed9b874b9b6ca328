/**
 * The part of an agent in a pod that keeps what the installation brought to this node valid, and tells the cluster that
 * the node has a network, if it is ours.
 */
import { existsSync, readFileSync } from "node:fs";
import { identity } from "../../identity.ts";
import type { KubeClient } from "../../kube/api.ts";
import { openKubeClient } from "../../kube/client.ts";
import { SERVICE_ACCOUNT_DIRECTORY } from "../../kube/connection.ts";
import { serverFromEnvironment } from "../../kube/server-from-environment.ts";
import { onceEach } from "../../log/once-each.ts";
import type { AgentProcess } from "../agent-process.ts";
import { type AgentPart, superviseParts } from "../supervise.ts";
import { nodeUid, requestAccountToken } from "./account-token.ts";
import { pathInContainer } from "./container-root.ts";
import { etcdSecrets } from "./etcd-secrets.ts";
import { keepNetworkAvailable } from "./keep-network-available.ts";
import { keepPluginAccess } from "./keep-plugin-access.ts";
import { etcdFilesDirectory, kubeconfigPath, secretEntry } from "./layout.ts";
import { NodeFiles } from "./node-files.ts";
import { type InstallPlaces, placesIn } from "./settings.ts";

export interface AccountMeans extends Pick<AgentProcess, "environment" | "say"> {
  /** The kubeconfig of the agent's account. */
  readonly account: string;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

interface Means extends AccountMeans {
  /** Whether this agent routes the pods of the node, and has set the routes. */
  readonly arePodsRouted: () => boolean;
}

export function podPart(means: Means): AgentPart {
  const { environment, say, wait, arePodsRouted } = means;
  return partWithClient("the installation on this node", means, (client) => {
    const places = placesIn(environment);
    const node = environment["NODE_NAME"] || undefined;
    return [
      {
        name: "the access of the plugin",
        run: (stop) => keepAccess(client, places, { environment, say, wait, node: node ?? "" }, stop),
      },
      ...(node === undefined || !places.managesCni
        ? []
        : [
            {
              name: "the condition of the Node",
              run: (stop: AbortSignal) => keepCondition(client, { node, say, wait, arePodsRouted }, stop),
            },
          ]),
    ];
  });
}

/** A part that consists of others, which share a client with the account of the agent. */
export function partWithClient(
  name: string,
  { environment, say, account, wait }: AccountMeans,
  partsWith: (client: KubeClient) => readonly AgentPart[],
): AgentPart {
  return {
    name,
    async run(signal) {
      const client = await openKubeClient(
        { kubeconfigs: [account] },
        {
          environment,
          warn: (message) => say(message, {}, "WARNING"),
          now: () => new Date(),
          elapsed: () => performance.now(),
          program: identity.nodeAgent,
        },
      );
      try {
        await superviseParts(partsWith(client), {
          signal,
          report: (message) => say(message, {}, "WARNING"),
          elapsed: () => performance.now(),
          wait,
        });
      } finally {
        await client.close();
      }
    },
  };
}

/** How tokens are renewed, wherever they are. */
export function renewalMeans({ wait, say }: Pick<AccountMeans, "wait" | "say">) {
  return {
    now: () => Date.now(),
    random: Math.random,
    wait,
    log: (message: string) => say(message),
    problems: onceEach((message) => say(message, {}, "ERROR")),
  };
}

function keepAccess(
  client: KubeClient,
  { namespace, pluginAccount, configDirectory, etcdSecretsDirectory, managesCni }: InstallPlaces,
  { environment, say, wait, node }: Pick<Means, "environment" | "say" | "wait"> & { readonly node: string },
  signal: AbortSignal,
): Promise<void> {
  const inContainer = (path: string) => pathInContainer(environment, path) ?? path;
  const path = kubeconfigPath(configDirectory);
  const directory = etcdFilesDirectory(configDirectory, true);
  const files = new NodeFiles(identity.stateDirectory);
  return keepPluginAccess(
    {
      path,
      server: serverFromEnvironment(environment) ?? "",
      isInstalled: () => managesCni && files.isInstalled(path),
      readAuthority: () => readFileSync(`${inContainer(SERVICE_ACCOUNT_DIRECTORY)}/ca.crt`, "utf8"),
      requestToken: (stop) => requestAccountToken(client, { namespace, name: pluginAccount, node }, stop),
      readNodeUid: (stop) => nodeUid(client, node, stop),
      copies: () =>
        etcdSecrets(inContainer(etcdSecretsDirectory))
          .map(({ name, text }) => secretEntry(`${directory}/${name}`, text))
          .filter((entry) => existsSync(entry.path)),
      ...renewalMeans({ wait, say }),
    },
    signal,
  );
}

function keepCondition(
  client: KubeClient,
  { say, ...means }: Pick<Means, "say" | "wait" | "arePodsRouted"> & { readonly node: string },
  signal: AbortSignal,
): Promise<void> {
  const problems = onceEach((message) => say(message, {}, "WARNING"));
  return keepNetworkAvailable(
    { ...means, client, now: () => new Date(), log: (message) => say(message), problems },
    signal,
  );
}
