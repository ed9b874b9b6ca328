/** A private host with an API server in its network, and the pod of the node agent on it: for tests of the installation. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { INSTALLED_LOG_FILE } from "../../src/config/installed-network-list.ts";
import { identity } from "../../src/identity.ts";
import { nodeRules } from "../../src/release/roles/rules.ts";
import { startAgent } from "../agent/agent.ts";
import { podOptions } from "../agent/pod.ts";
import { type Finished, type Host, openHost } from "../support/host.ts";
import { type ApiServer, startApiServer } from "../support/kube-apiserver.ts";
import { installCrds } from "../support/kube-crds.ts";
import type { ServiceAccountUser } from "../support/kubectl.ts";

export const NODE = "node-1";
const NAMESPACE = "kube-system";
const PLUGIN_ACCOUNT = `${identity.product}-cni-plugin`;
export const CONFIG_DIRECTORY = "/etc/cni/net.d";
export const NETWORK_LIST = `${CONFIG_DIRECTORY}/10-${identity.product}.conflist`;
export const KUBECONFIG = `${CONFIG_DIRECTORY}/${identity.product}-kubeconfig`;

const PLUGIN_ROLE = `${identity.product}-kubernetes`;
const PREFIX = identity.environmentPrefix;
const ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

export interface PodInput {
  /** Fields of our plugin's entry. */
  readonly plugin?: Readonly<Record<string, unknown>>;
  /** The whole text of the network config. */
  readonly config?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
}

export interface InstallSite extends AsyncDisposable {
  readonly host: Host;
  readonly server: ApiServer;
  readonly agentUser: string;
  /** Runs a command of the node agent in a container on the host. */
  inPod(command: "install" | "uninstall", input?: PodInput): Promise<Finished>;
  startAgentInPod(input?: PodInput): ReturnType<typeof startAgent>;
  /** A file of the host; `undefined` if there is none. */
  read(path: string): string | undefined;
}

export async function openInstallSite(): Promise<InstallSite> {
  const host = await openHost();
  await host.must(["ip", "addr", "add", "192.0.2.1/32", "dev", "lo"]);
  const server = await startApiServer();
  const relays = await server.relayInto(host.netns);
  await installCrds(server);
  await server.apply(readFileSync(join(import.meta.dir, "../../deploy/rbac/vendor-kubernetes.yaml"), "utf8"));
  await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: NODE } }));
  await server.serviceAccount({ name: PLUGIN_ACCOUNT, clusterRole: PLUGIN_ROLE });
  const agent = await agentAccount(server);
  const { hostname, port } = new URL(server.url);

  const podOf = (
    { plugin = {}, config = listOf(plugin), environment = {}, files = {} }: PodInput,
    command: string[],
  ) => ({
    ...podOptions("host's processes", {
      command,
      files: {
        [`${ACCOUNT}/token`]: agent.token,
        [`${ACCOUNT}/ca.crt`]: readFileSync(server.credentials.authority.cert, "utf8"),
        "/tmp/config": config,
        ...files,
      },
    }),
    environment: {
      KUBERNETES_SERVICE_HOST: hostname,
      KUBERNETES_SERVICE_PORT: port,
      NODE_NAME: NODE,
      POD_NAMESPACE: NAMESPACE,
      [`${PREFIX}NETWORK_CONFIG_FILE`]: "/tmp/config",
      [`${PREFIX}ETCD_SECRETS`]: "/tmp/secrets",
      ...environment,
    },
  });
  return {
    host,
    server,
    agentUser: agent.user,
    inPod(command, input = {}) {
      const { under = [], program = "", args = [], environment } = podOf(input, [command]);
      const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
      return host.run([...under, "env", ...variables, program, ...args], { limitMilliseconds: 60_000 });
    },
    startAgentInPod: (input = {}) => startAgent(host, podOf(input, [])),
    read(path) {
      try {
        return readFileSync(host.view(path), "utf8");
      } catch {
        return undefined;
      }
    },
    async [Symbol.asyncDispose]() {
      relays[Symbol.dispose]();
      await server.stop();
      await host[Symbol.asyncDispose]();
    },
  };
}

/** As a ConfigMap has it: the same for all nodes. */
function listOf(plugin: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({
    name: "k8s-pod-network",
    cniVersion: "1.0.0",
    plugins: [
      {
        type: identity.product,
        datastore_type: "kubernetes",
        log_file_path: INSTALLED_LOG_FILE,
        ipam: { type: identity.ipamType },
        ...plugin,
      },
      { type: "portmap", capabilities: { portMappings: true } },
    ],
  });
}

const AGENT_RULES = [
  ...nodeRules("kubernetes"),
  { apiGroups: [""], resources: ["serviceaccounts/token"], verbs: ["create"], resourceNames: [PLUGIN_ACCOUNT] },
  { apiGroups: [""], resources: ["nodes"], verbs: ["get", "list", "watch"] },
  { apiGroups: [""], resources: ["nodes/status"], verbs: ["patch"] },
  { apiGroups: [identity.apiGroup], resources: ["clusterinformations"], verbs: ["get", "create", "update"] },
  { apiGroups: [identity.apiGroup], resources: ["ippools"], verbs: ["list", "create"] },
  { apiGroups: [identity.apiGroup], resources: ["nodeagentconfigurations"], verbs: ["get", "create"] },
];

async function agentAccount(server: ApiServer): Promise<ServiceAccountUser> {
  const apiVersion = "rbac.authorization.k8s.io/v1";
  const name = "install";
  await server.apply(JSON.stringify({ apiVersion, kind: "ClusterRole", metadata: { name }, rules: AGENT_RULES }));
  return server.serviceAccount({ name: identity.nodeAgent, clusterRole: name });
}
