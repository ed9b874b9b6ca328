/**
 * The DaemonSet of the node agent: its init container installs the plugin on the node, its container is the agent. Both
 * enter the namespaces of the host, so that no directory of the host is mounted. Pure.
 */
import { identity } from "../../identity.ts";
import { KUBELET_DIRECTORY, NO_KUBELET } from "../../model/kubelet-directory.ts";
import type { KubeObject } from "../kube-object.ts";
import { PLUGIN_ACCOUNT } from "../roles/rules.ts";
import { BINDS_TOKENS, CONFIG_HASH, NODE_HEALTH_PORT, podLabels, UNINSTALL } from "./names.ts";
import {
  apiEndpoint,
  containerBase,
  etcdSecretAnnotation,
  etcdVolumes,
  fromField,
  hashOf,
  hostReadinessProbe,
  networkConfigVolume,
  pullSecrets,
} from "./pod-parts.ts";
import type { EnvironmentVariable, RenderPlan } from "./render-plan.ts";

const IN_HOST = ["--host-namespaces", "/proc/1/ns"];

/** `config`: the ConfigMap of the network config; when it changes, the pods are replaced. */
export function nodeDaemonSet(plan: RenderPlan, config: KubeObject): KubeObject {
  const { installation, facts } = plan;
  const { node: override } = installation.overrides;
  const volumes = [networkConfigVolume(), ...etcdVolumes(plan)];
  const volumeMounts = volumes.map(({ mount }) => mount);
  const environment = nodeEnvironment(plan);
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: identity.nodeAgent, namespace: facts.namespace },
    spec: {
      selector: { matchLabels: podLabels(identity.nodeAgent) },
      updateStrategy: installation.nodeUpdateStrategy,
      template: {
        metadata: {
          labels: podLabels(identity.nodeAgent),
          annotations: {
            [CONFIG_HASH]: hashOf(config["data"]),
            [BINDS_TOKENS]: "true",
            ...etcdSecretAnnotation(plan),
          },
        },
        spec: {
          ...nodePod(plan, identity.nodeAgent),
          initContainers: [
            {
              name: "install",
              ...containerBase(plan),
              command: [identity.nodeAgent, "install", ...IN_HOST],
              env: [...environment, ...plan.node.installEnvironment, ...plan.etcd.endpoints],
              securityContext: { privileged: true },
              volumeMounts,
            },
          ],
          containers: [
            {
              name: identity.nodeAgent,
              ...containerBase(plan),
              command: [identity.nodeAgent, ...IN_HOST],
              env: environment,
              readinessProbe: hostReadinessProbe(NODE_HEALTH_PORT),
              ...(override.resources === undefined ? {} : { resources: override.resources }),
              securityContext: { privileged: true },
              volumeMounts,
            },
          ],
          volumes: volumes.map(({ volume }) => volume),
        },
      },
    },
  };
}

/** Removes the product from every node, and stays until it is deleted: a pod that is ready has removed everything. */
export function uninstallDaemonSet(plan: RenderPlan, account: string): KubeObject {
  const container = (name: string, more: readonly string[]) => ({
    name,
    ...containerBase(plan),
    command: [identity.nodeAgent, "uninstall", ...IN_HOST, ...more],
    env: nodeEnvironment(plan),
    securityContext: { privileged: true },
  });
  const everywhere = { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "100%" } };
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: UNINSTALL, namespace: plan.facts.namespace },
    spec: {
      selector: { matchLabels: podLabels(UNINSTALL) },
      updateStrategy: everywhere,
      template: {
        metadata: { labels: podLabels(UNINSTALL) },
        spec: {
          ...nodePod(plan, account),
          initContainers: [container("uninstall", [])],
          containers: [container("done", ["--stay"])],
        },
      },
    },
  };
}

/** In the network and the process IDs of the host, on every node of Linux, whatever its taints are. */
function nodePod(plan: RenderPlan, account: string) {
  const { node: override } = plan.installation.overrides;
  return {
    serviceAccountName: account,
    ...pullSecrets(plan),
    priorityClassName: "system-node-critical",
    hostNetwork: true,
    hostPID: true,
    dnsPolicy: "Default",
    terminationGracePeriodSeconds: 10,
    nodeSelector: { "kubernetes.io/os": "linux", ...override.nodeSelector },
    tolerations: override.tolerations ?? [{ operator: "Exists" }],
    ...(override.affinity === undefined ? {} : { affinity: override.affinity }),
  };
}

function nodeEnvironment(plan: RenderPlan): readonly EnvironmentVariable[] {
  const { installation } = plan;
  const { cni } = installation;
  return [
    fromField("NODE_NAME", "spec.nodeName"),
    fromField("POD_NAMESPACE", "metadata.namespace"),
    ...apiEndpoint(plan),
    { name: "CNI_BIN_DIR", value: cni.binDir },
    { name: "CNI_CONF_DIR", value: cni.confDir },
    { name: `${identity.environmentPrefix}PLUGIN_ACCOUNT`, value: PLUGIN_ACCOUNT },
    { name: KUBELET_DIRECTORY, value: installation.kubeletDirectory ?? NO_KUBELET },
    ...plan.node.environment,
  ];
}
