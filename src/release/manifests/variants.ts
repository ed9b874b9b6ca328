/**
 * The manifests that install the product without the operator, rendered by the same functions. What an administrator is to
 * change is in one ConfigMap, which every manifest starts with. Pure.
 */

import { apiVersionOf, identity, OPERATOR_API } from "../../identity.ts";
import { HOST_LOCAL } from "../../model/installation/choices.ts";
import { formatProblem } from "../../model/problem.ts";
import { completeInstallation } from "../installation/complete.ts";
import type { EffectiveInstallation, InstallationDatastore } from "../installation/effective-installation.ts";
import type { KubeObject } from "../kube-object.ts";
import { accountObject } from "../roles/role-objects.ts";
import { CREATE_CONFIGURED, FOLLOW_PODS, type Rule } from "../roles/rules.ts";
import { componentObjects } from "../workloads/components.ts";
import { consoleObjects } from "../workloads/console.ts";
import { flowApiObjects } from "../workloads/flow-api.ts";
import {
  ALERTS_VARIABLE,
  API_ENDPOINT_CONFIG_MAP,
  CONSOLE,
  CONSOLE_VARIABLE,
  ETCD_SECRETS_MOUNT,
  FLOWS,
  FLOWS_VARIABLE,
  UNINSTALL,
} from "../workloads/names.ts";
import { uninstallDaemonSet } from "../workloads/node-daemon-set.ts";
import { type EnvironmentVariable, type RenderPlan, withLabels } from "../workloads/render-plan.ts";

export interface ManifestVariant {
  readonly datastore: "kubernetes" | "etcd";
  /**
   * "own": our plugin connects the pods. "other": another plugin does, we enforce policy. "fabric": our plugin connects
   * them, with the ranges of the Nodes, and the network between the nodes has the routes.
   */
  readonly network: "own" | "other" | "fabric";
}

const LABELS = { "app.kubernetes.io/part-of": identity.product };
const NAMESPACE = "kube-system";
const FACTS = { namespace: NAMESPACE, pools: [], platformPodCidrs: [] };
const CONFIG_MAP = `${identity.product}-config`;
const ETCD_SECRET = `${identity.product}-etcd-secrets`;

/** Refused by the installation of a node until an administrator has replaced it. */
const ETCD_PLACEHOLDER = "http://<ETCD_IP>:<ETCD_PORT>";

const DEFAULT_POOL = { cidr: "192.168.0.0/16", vxlanMode: "CrossSubnet", natOutgoing: true };

/** What an administrator may change, and the components. `version`: of the image. */
export function variantObjects(variant: ManifestVariant, version: string) {
  const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: ETCD_SECRET, namespace: NAMESPACE } };
  const settings: readonly KubeObject[] = [
    configMap(variant),
    ...(variant.datastore === "etcd" ? [{ ...secret, type: "Opaque", data: {} }] : []),
  ];
  return {
    settings: settings.map((object) => withLabels(object, LABELS)),
    components: componentObjects(planOf(variant, version)),
  };
}

/** Removes the product from the nodes, with an account of its own: that of the node agent is deleted before. */
export function uninstallObjects(version: string): readonly KubeObject[] {
  const plan = planOf({ datastore: "kubernetes", network: "own" }, version);
  const account = { name: UNINSTALL, namespace: NAMESPACE };
  return [accountObject(account), uninstallDaemonSet(plan, account.name)].map((object) => withLabels(object, LABELS));
}

/** Of a manifest of its own, which is applied in addition while flows are on; the controllers read it when they start. */
const FLOWS_SETTINGS = `${FLOWS}-settings`;
/** Of both switches. */
const SETTING_MODE = "mode";
/** Of the console: `NAMESPACE/SERVICE:PORT`. */
const SETTING_ALERTS = "alerts";

/** The API of flows, beside any of the manifests. */
export function flowObjects(): readonly KubeObject[] {
  const settings: KubeObject = {
    ...{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: FLOWS_SETTINGS, namespace: NAMESPACE } },
    data: { [SETTING_MODE]: "Enabled" },
  };
  return [settings, ...flowApiObjects(NAMESPACE, { limitsNodes: true })].map((object) => withLabels(object, LABELS));
}

/** As with flows. The pod takes its settings of etcd from the manifest that it is beside. */
const CONSOLE_SETTINGS = `${CONSOLE}-settings`;

/** The console, beside any of the manifests with this datastore. */
export function consoleManifestObjects(
  datastore: ManifestVariant["datastore"],
  version: string,
): readonly KubeObject[] {
  const settings: KubeObject = {
    ...{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: CONSOLE_SETTINGS, namespace: NAMESPACE } },
    data: { [SETTING_MODE]: "Enabled" },
  };
  const plan = planOf({ datastore, network: "own" }, version);
  return [settings, ...consoleObjects(plan)].map((object) => withLabels(object, LABELS));
}

/** Each setting with the variable that hands it to the installation of a node. */
function settingsOf({ datastore, network }: ManifestVariant): readonly (readonly [key: string, value: string])[] {
  return [
    ...(datastore === "etcd" ? ETCD_SETTINGS : []),
    ...(network === "own" ? [["default_pools", jsonText([DEFAULT_POOL])] as const] : []),
    ...(network === "own" ? [] : [["node_agent_configuration", jsonText(nodeAgentConfiguration(network))] as const]),
  ];
}

/** In several lines, so that it can be read and edited. */
function jsonText(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

const ETCD_SETTINGS = [
  ["etcd_endpoints", ETCD_PLACEHOLDER],
  ["etcd_ca", ""],
  ["etcd_cert", ""],
  ["etcd_key", ""],
] as const;

/** Neither routes nor tunnels nor BGP. The interfaces of the other plugin have names that begin with the prefix. */
function nodeAgentConfiguration(network: "other" | "fabric"): object {
  return { ...(network === "other" ? { interfacePrefix: "veth" } : {}), routing: "Disabled" };
}

function configMap(variant: ManifestVariant): KubeObject {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: CONFIG_MAP, namespace: NAMESPACE },
    data: Object.fromEntries(settingsOf(variant)),
  };
}

function planOf(variant: ManifestVariant, version: string): RenderPlan {
  const prefix = identity.environmentPrefix;
  const isEtcd = variant.datastore === "etcd";
  return {
    installation: installationOf(variant),
    facts: { ...FACTS, version },
    labels: LABELS,
    etcd: {
      endpoints: isEtcd ? [fromSetting("ETCD_ENDPOINTS", "etcd_endpoints")] : [],
      discovery: [],
      files: isEtcd ? ETCD_FILES.map(([name, key]) => fromSetting(name, key)) : [],
    },
    node: {
      environment: variant.network === "other" ? [{ name: `${prefix}MANAGE_CNI`, value: "false" }] : [],
      installEnvironment: [
        variant.network === "own"
          ? fromSetting(`${prefix}DEFAULT_POOLS`, "default_pools")
          : fromSetting(`${prefix}NODE_AGENT_CONFIGURATION`, "node_agent_configuration"),
      ],
      rules: furtherRules(variant),
    },
    controllers: [
      fromOptional(FLOWS_VARIABLE, FLOWS_SETTINGS, SETTING_MODE),
      fromOptional(CONSOLE_VARIABLE, CONSOLE_SETTINGS, SETTING_MODE),
    ],
    console: [fromOptional(ALERTS_VARIABLE, CONSOLE_SETTINGS, SETTING_ALERTS)],
    environmentFrom: [{ configMapRef: { name: API_ENDPOINT_CONFIG_MAP, optional: true } }],
  };
}

/** The plugin of another project writes no endpoints to etcd: the node agent does, from the pods of its node. */
function furtherRules({ datastore, network }: ManifestVariant): readonly Rule[] {
  if (datastore === "kubernetes") return CREATE_CONFIGURED;
  return network === "other" ? [FOLLOW_PODS] : [];
}

/** The paths of the files in the pods of the controllers; the installation of a node finds them itself. */
const ETCD_FILES = [
  ["ETCD_CA_CERT_FILE", "etcd_ca"],
  ["ETCD_CERT_FILE", "etcd_cert"],
  ["ETCD_KEY_FILE", "etcd_key"],
] as const;

function fromOptional(name: string, settings: string, key: string): EnvironmentVariable {
  return { name, valueFrom: { configMapKeyRef: { name: settings, key, optional: true } } };
}

function fromSetting(name: string, key: string): EnvironmentVariable {
  return { name, valueFrom: { configMapKeyRef: { name: CONFIG_MAP, key } } };
}

/** As the operator completes an Installation that says nothing else. */
function installationOf({ datastore, network }: ManifestVariant): EffectiveInstallation {
  const spec = network === "fabric" ? { cni: { ipam: { type: HOST_LOCAL } } } : {};
  const completed = completeInstallation({ default: { ...INSTALLATION, spec } }, { ...FACTS, version: "" });
  if (!completed.ok) throw new Error(completed.problems.map(formatProblem).join("; "));
  // The endpoints are in the ConfigMap.
  const etcd: InstallationDatastore = { type: "Etcd", endpoints: "", secretName: ETCD_SECRET };
  return datastore === "etcd" ? { ...completed.installation, datastore: etcd } : completed.installation;
}

const INSTALLATION = {
  apiVersion: apiVersionOf(OPERATOR_API),
  kind: "Installation",
  metadata: { name: "default" },
} as const;

/** What a comment at the head of the manifest says. */
export function variantNotes({ datastore, network }: ManifestVariant): readonly string[] {
  const settings = `ConfigMap ${CONFIG_MAP}`;
  return [
    ...(datastore === "etcd"
      ? [
          `Set etcd_endpoints in the ${settings} first. With TLS, put etcd-ca, etcd-cert and etcd-key into the Secret ${ETCD_SECRET},`,
          `and set etcd_ca, etcd_cert and etcd_key to their paths in pods, such as ${ETCD_SECRETS_MOUNT}/etcd-ca.`,
        ]
      : []),
    ...(network === "own" ? [`Pools: default_pools in the ${settings}, used if the datastore has none.`] : []),
    ...(network === "other"
      ? [`Set interfacePrefix in the ${settings} to what the names of the other plugin's interfaces begin with.`]
      : []),
    ...(network === "fabric"
      ? ["The network between the nodes must have routes to the ranges of the Nodes (spec.podCIDRs)."]
      : []),
  ];
}
