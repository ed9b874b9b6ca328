/**
 * What an Installation is rendered to: the objects to apply, in their order, and the settings for the datastore. Pure: it
 * depends on the Installation and on what was found in the cluster, and on nothing else.
 */
import { ETCD_SECRET_KEYS } from "../../config/etcd-secret-keys.ts";
import { identity } from "../../identity.ts";
import type { NodeAgentConfigurationSpec } from "../../model/node-agent-configuration.ts";
import type { ClusterFacts } from "../installation/cluster-facts.ts";
import type { EffectiveInstallation, InstallationDatastore } from "../installation/effective-installation.ts";
import type { KubeObject } from "../kube-object.ts";
import { MANAGED_BY } from "../managed-by-label.ts";
import { OPERATOR_ACCOUNT, OPERATOR_SECRETS_ROLE } from "../roles/operator-rules.ts";
import { clusterRoleInNamespace } from "../roles/role-objects.ts";
import { componentObjects } from "./components.ts";
import { ALERTS_VARIABLE, CONSOLE_VARIABLE, ETCD_SECRETS_MOUNT, FLOWS_VARIABLE } from "./names.ts";
import { namespaceObject } from "./namespace.ts";
import { nodeAgentConfiguration } from "./node-agent-configuration.ts";
import { uninstallDaemonSet } from "./node-daemon-set.ts";
import { type EnvironmentVariable, type EtcdAccess, type RenderPlan, withLabels } from "./render-plan.ts";

export interface Rendered {
  /** In the order of application. */
  readonly objects: readonly KubeObject[];
  /** Of the product's datastore, which need not be the orchestrator's API. */
  readonly resources: { readonly nodeAgentConfiguration: NodeAgentConfigurationSpec };
}

export function renderInstallation(installation: EffectiveInstallation, facts: ClusterFacts): Rendered {
  const { namespace } = facts;
  // In its namespace the operator may also handle Secrets, before it copies any there.
  const secrets = clusterRoleInNamespace({ name: OPERATOR_SECRETS_ROLE, namespace }, OPERATOR_ACCOUNT);
  const before = [namespaceObject(namespace), secrets].map((object) => withLabels(object, MANAGED_BY));
  return {
    objects: [...before, ...componentObjects(planOf(installation, facts))],
    resources: { nodeAgentConfiguration: nodeAgentConfiguration(installation) },
  };
}

/** The DaemonSet that removes the product from the nodes, when the one of the node agent is gone. */
export function renderUninstall(installation: EffectiveInstallation, facts: ClusterFacts): KubeObject {
  return withLabels(uninstallDaemonSet(planOf(installation, facts), identity.nodeAgent), MANAGED_BY);
}

function planOf(installation: EffectiveInstallation, facts: ClusterFacts): RenderPlan {
  return {
    installation,
    facts,
    labels: MANAGED_BY,
    etcd: etcdAccess(installation.datastore, facts),
    node: { environment: [], installEnvironment: [], rules: [] },
    controllers: [
      ...(installation.flows.mode === "Enabled" ? [{ name: FLOWS_VARIABLE, value: "Enabled" }] : []),
      ...(installation.console.mode === "Enabled" ? [{ name: CONSOLE_VARIABLE, value: "Enabled" }] : []),
    ],
    console: alertsVariable(installation.console.alerts),
    environmentFrom: [],
  };
}

function alertsVariable(alerts: EffectiveInstallation["console"]["alerts"]): readonly EnvironmentVariable[] {
  if (alerts === undefined) return [];
  const { namespace, service, port } = alerts;
  return [{ name: ALERTS_VARIABLE, value: `${namespace}/${service}:${port}` }];
}

const ETCD_FILES = [
  ["ETCD_CA_CERT_FILE", ETCD_SECRET_KEYS.caCert],
  ["ETCD_CERT_FILE", ETCD_SECRET_KEYS.cert],
  ["ETCD_KEY_FILE", ETCD_SECRET_KEYS.key],
] as const;

function etcdAccess(datastore: InstallationDatastore, facts: ClusterFacts): EtcdAccess {
  if (datastore.type !== "Etcd") return { endpoints: [], discovery: [], files: [] };
  const found = datastore.secretName === undefined ? [] : (facts.etcdSecretKeys ?? ETCD_FILES.map(([, key]) => key));
  const files = ETCD_FILES.filter(([, key]) => found.includes(key));
  const { endpoints, discoveryDomain: domain } = datastore;
  return {
    endpoints: domain === undefined ? [{ name: "ETCD_ENDPOINTS", value: endpoints }] : [],
    discovery: domain === undefined ? [] : [{ name: "ETCD_DISCOVERY_SRV", value: domain }],
    files: files.map(([name, key]) => ({ name, value: `${ETCD_SECRETS_MOUNT}/${key}` })),
  };
}
