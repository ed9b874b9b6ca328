/**
 * The `spec` of an Installation, as a user writes it: everything is optional. Static defaults are not in this schema,
 * because the resource `overlay` has it too, and its defaults would override what `default` says; see
 * `src/release/installation/complete.ts`.
 */
import * as v from "valibot";
import { identity } from "../../identity.ts";
import { admissionSchema } from "./admission.ts";
import { cniSchema } from "./cni.ts";
import { consoleSchema } from "./console.ts";
import { datastoreSchema } from "./datastore.ts";
import {
  anyObjectField,
  anyText,
  nodeSelectorField,
  onlyValues,
  portField,
  resourcesField,
  tolerationField,
  wholeNumber,
} from "./fields.ts";
import { flowsSchema } from "./flows.ts";
import { loggingSchema } from "./logging.ts";
import { withWireNames } from "./names.ts";
import { networkSchema } from "./network.ts";
import { workloadSchema } from "./workload.ts";

const { title } = identity;

/** Where images come from if a field says so by this word. */
export const USE_DEFAULT = "UseDefault";

const PROVIDERS = ["", "EKS", "GKE", "AKS", "OpenShift", "DockerEnterprise", "RKE2", "TKG"] as const;

const NOT_A_REGISTRY =
  'is not a registry; use a host with an optional port and path, for example "registry.example.org/"';
const NOT_A_PATH = 'is not part of an image name; use lower-case letters, digits, ".", "_", "-" and "/"';
const NOT_A_PREFIX = 'is not part of an image name; use lower-case letters, digits, ".", "_" and "-"';
const NOT_REPLICAS = "is not a number of replicas; use a whole number of at least 1";
const NO_FLEX_VOLUMES = `is not supported: ${title} has a CSI driver, not a FlexVolume; use "None" or remove it`;
const NOT_A_KUBELET =
  'is not an absolute path; use the directory of the kubelet on the nodes, or "None" for no volumes of sidecars';
const NOT_UNAVAILABLE = 'is not a number or share of nodes; use for example 1 or "10%"';

/** A host, an optional port, and an optional path. */
const REGISTRY = /^((\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]+)(:[0-9]+)?(\/[A-Za-z0-9._-]+)*\/?)?$/;

const imageFields = {
  registry: v.exactOptional(v.pipe(v.string(), v.regex(REGISTRY, NOT_A_REGISTRY))),
  imagePath: v.exactOptional(v.pipe(v.string(), v.regex(/^([a-z0-9._/-]*|UseDefault)$/, NOT_A_PATH))),
  imagePrefix: v.exactOptional(v.pipe(v.string(), v.regex(/^([a-z0-9._-]*|UseDefault)$/, NOT_A_PREFIX))),
  imagePullSecrets: v.exactOptional(v.array(v.object({ name: v.string() }))),
};

/** A path without "." and ".." as its parts, or "None". */
const KUBELET_DIRECTORY = /^((\/([^/.][^/]*|\.[^/.][^/]*|\.\.[^/]+))+\/?|None)$/;

export const SHARE_OF_NODES = /^([1-9][0-9]?|100)%$/;

/** A number of nodes, or a share of them. */
export const maxUnavailableField = v.pipe(
  v.union([v.number(), v.string()]),
  v.check((value) => isNodeCount(value), NOT_UNAVAILABLE),
);

function isNodeCount(value: number | string): boolean {
  return typeof value === "number" ? Number.isInteger(value) && value >= 1 : SHARE_OF_NODES.test(value);
}

const workloadFields = {
  controlPlaneNodeSelector: v.exactOptional(nodeSelectorField),
  controlPlaneTolerations: v.exactOptional(v.array(tolerationField)),
  controlPlaneReplicas: v.exactOptional(wholeNumber(NOT_REPLICAS, 1, 100)),
  nodeMetricsPort: v.exactOptional(portField),
  nodeUpdateStrategy: v.exactOptional(
    v.object({
      type: v.exactOptional(
        onlyValues(
          ["RollingUpdate"],
          'is not supported: the operator replaces the pods of the nodes itself; use "RollingUpdate"',
        ),
      ),
      rollingUpdate: v.exactOptional(v.object({ maxUnavailable: v.exactOptional(maxUnavailableField) })),
    }),
  ),
  componentResources: v.exactOptional(
    v.array(
      v.object({
        componentName: onlyValues(["Node", "KubeControllers"], 'is not a component; use "Node" or "KubeControllers"'),
        resourceRequirements: v.exactOptional(resourcesField),
      }),
    ),
  ),
  nodeDaemonSet: v.exactOptional(workloadSchema(identity.nodeAgent)),
  controllersDeployment: v.exactOptional(workloadSchema(identity.controllers)),
};

const NO_TYPHA = "is not supported: every node agent follows the datastore itself, there is no Typha; remove it";
const NO_WINDOWS = "is not supported: nodes run Linux; remove it";
const { product } = identity;

/** Fields that upstream's resource has and that nothing here carries out. */
export const REFUSED_SPEC_FIELDS: Readonly<Record<string, string>> = {
  typhaAffinity: NO_TYPHA,
  typhaMetricsPort: NO_TYPHA,
  typhaDeployment: NO_TYPHA,
  certificateManagement: "is not supported: the components have no certificates of their own; remove it",
  windowsNodes: NO_WINDOWS,
  serviceCIDRs: NO_WINDOWS,
  [`${product}NodeWindowsDaemonSet`]: NO_WINDOWS,
  csiNodeDriverDaemonSet: "is not supported: the node agent serves the CSI driver; remove it",
  azure: "is not supported: the plugin of Azure is not used; remove it",
};

const refusedFields = {
  typhaAffinity: v.exactOptional(anyObjectField),
  typhaMetricsPort: v.exactOptional(v.number()),
  typhaDeployment: v.exactOptional(anyObjectField),
  certificateManagement: v.exactOptional(anyObjectField),
  windowsNodes: v.exactOptional(anyObjectField),
  serviceCIDRs: v.exactOptional(v.array(anyText)),
  [`${product}NodeWindowsDaemonSet`]: v.exactOptional(anyObjectField),
  csiNodeDriverDaemonSet: v.exactOptional(anyObjectField),
  azure: v.exactOptional(anyObjectField),
};

const ownEntries = {
  variant: v.exactOptional(onlyValues([title], `is not supported: there is one variant; use "${title}" or remove it`)),
  ...imageFields,
  kubernetesProvider: v.exactOptional(v.picklist(PROVIDERS)),
  datastore: v.exactOptional(datastoreSchema),
  cni: v.exactOptional(cniSchema),
  network: v.exactOptional(networkSchema),
  logging: v.exactOptional(loggingSchema),
  ...workloadFields,
  nonPrivileged: v.exactOptional(
    onlyValues(
      ["Disabled"],
      'is not supported: the node agent sets up networks of the host and of pods, for which it must be privileged; use "Disabled" or remove it',
    ),
  ),
  fipsMode: v.exactOptional(
    onlyValues(
      ["Disabled"],
      'is not supported: the cryptography of the executable is not certified; use "Disabled" or remove it',
    ),
  ),
  flexVolumePath: v.exactOptional(onlyValues(["None"], NO_FLEX_VOLUMES)),
  kubeletVolumePluginPath: v.exactOptional(v.pipe(v.string(), v.regex(KUBELET_DIRECTORY, NOT_A_KUBELET))),
  admissionPolicies: v.exactOptional(admissionSchema),
  flows: v.exactOptional(flowsSchema),
  console: v.exactOptional(consoleSchema),
} as const;

const ownSchema = v.object(ownEntries);

/** Under the names that the program uses. */
export type InstallationSpec = Readonly<v.InferOutput<typeof ownSchema>>;

/** Under the names that users write, with the fields that are refused. */
export const wireSpecSchema: v.GenericSchema = v.object(
  withWireNames({ ...ownEntries, ...refusedFields }) as Readonly<Record<string, v.GenericSchema>>,
);
