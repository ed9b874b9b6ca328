/**
 * The operator of earlier releases and what it rendered: the objects as v3.15 to v3.28 had them. Images are of any registry,
 * the operator has versions of its own.
 */
import { apiVersionOf, identity, OPERATOR_API } from "../../../src/identity.ts";
import type { ClusterObjects } from "../../../src/kube/objects.ts";
import {
  FORMER_API_SERVER,
  FORMER_CONTROLLERS,
  FORMER_NODE_DAEMON_SET,
  FORMER_TYPHA,
} from "../../../src/upgrade/former-names.ts";
import { pollUntil } from "../poll.ts";

export type FormerVersion = "v3.15.5" | "v3.22.5" | "v3.26.4" | "v3.28.2";

const OPERATOR_VERSIONS: Readonly<Record<FormerVersion, string>> = {
  "v3.15.5": "v1.7.9",
  "v3.22.5": "v1.25.14",
  "v3.26.4": "v1.30.9",
  "v3.28.2": "v1.34.5",
};

const { product, operator: OPERATOR, systemNamespace: SYSTEM } = identity;
const RBAC = "rbac.authorization.k8s.io";
const OWN_API = apiVersionOf(OPERATOR_API);
const REGISTRY = "docker.example.org/";

type Json = Readonly<Record<string, unknown>>;

/** Its namespace, account, roles and Deployment, as in the manifest of the operator. */
export function formerOperator(version: FormerVersion): readonly Json[] {
  const namespace = { name: OPERATOR, labels: { name: OPERATOR, "pod-security.kubernetes.io/enforce": "privileged" } };
  return [{ apiVersion: "v1", kind: "Namespace", metadata: namespace }, ...formerOperatorInNamespace(version)];
}

export function formerOperatorInNamespace(version: FormerVersion): readonly Json[] {
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: OPERATOR, namespace: OPERATOR } },
    {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRole",
      metadata: { name: OPERATOR },
      rules: [
        {
          apiGroups: [""],
          resources: ["namespaces", "pods", "configmaps", "secrets"],
          verbs: ["create", "get", "list"],
        },
        { apiGroups: [OPERATOR_API.group], resources: ["*"], verbs: ["*"] },
        { apiGroups: ["policy"], resourceNames: [OPERATOR], resources: ["podsecuritypolicies"], verbs: ["use"] },
      ],
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: OPERATOR },
      subjects: [{ kind: "ServiceAccount", name: OPERATOR, namespace: OPERATOR }],
      roleRef: { kind: "ClusterRole", name: OPERATOR, apiGroup: RBAC },
    },
    operatorDeployment(OPERATOR_VERSIONS[version]),
  ];
}

function operatorDeployment(version: string): Json {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: OPERATOR, namespace: OPERATOR, labels: { "k8s-app": OPERATOR } },
    spec: {
      replicas: 1,
      selector: { matchLabels: { name: OPERATOR } },
      template: {
        metadata: { labels: { name: OPERATOR, "k8s-app": OPERATOR } },
        spec: {
          nodeSelector: { "kubernetes.io/os": "linux" },
          tolerations: [
            { effect: "NoExecute", operator: "Exists" },
            { effect: "NoSchedule", operator: "Exists" },
          ],
          serviceAccountName: OPERATOR,
          hostNetwork: true,
          dnsPolicy: "ClusterFirstWithHostNet",
          containers: [
            {
              name: OPERATOR,
              image: `quay.example.org/${product}/operator:${version}`,
              imagePullPolicy: "IfNotPresent",
              command: ["operator"],
              volumeMounts: [{ name: `var-lib-${product}`, readOnly: true, mountPath: `/var/lib/${product}` }],
              env: [
                { name: "WATCH_NAMESPACE", value: "" },
                { name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
                { name: "OPERATOR_NAME", value: OPERATOR },
              ],
              envFrom: [{ configMapRef: { name: "kubernetes-services-endpoint", optional: true } }],
            },
          ],
          volumes: [{ name: `var-lib-${product}`, hostPath: { path: `/var/lib/${product}` } }],
        },
      },
    },
  };
}

/** Definitions of its own API: everything is accepted below `spec`, as far as a test needs it. */
function formerOperatorDefinitions(): readonly Json[] {
  const kinds = ["Installation", "APIServer", "ImageSet", `${identity.title}Status`];
  const anything = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  return kinds.map((kind) => {
    const plural = `${kind.toLowerCase()}${kind.endsWith("s") ? "es" : "s"}`;
    return {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: `${plural}.${OPERATOR_API.group}` },
      spec: {
        group: OPERATOR_API.group,
        scope: "Cluster",
        names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
        versions: [
          {
            name: OPERATOR_API.version,
            served: true,
            storage: true,
            subresources: { status: {} },
            schema: { openAPIV3Schema: { type: "object", properties: { spec: anything, status: anything } } },
          },
        ],
      },
    };
  });
}

/**
 * As the operator has completed it.
 * @public
 */
export function formerInstallation(pool = "10.244.0.0/16"): Json {
  return {
    apiVersion: OWN_API,
    kind: "Installation",
    metadata: {
      name: "default",
      finalizers: [`${OPERATOR_API.group}/installation-controller`, `${product}.io/operator-cleanup`],
    },
    spec: formerInstallationSpec(pool),
  };
}

export function formerInstallationSpec(pool: string): Json {
  const { title } = identity;
  return {
    variant: title,
    cni: { type: title, ipam: { type: title } },
    [`${product}Network`]: {
      bgp: "Enabled",
      hostPorts: "Enabled",
      linuxDataplane: "Iptables",
      linuxPolicySetupTimeoutSeconds: 0,
      multiInterfaceMode: "None",
      windowsDataplane: "Disabled",
      mtu: 1430,
      nodeAddressAutodetectionV4: { firstFound: true },
      ipPools: [
        {
          name: "default-ipv4-ippool",
          cidr: pool,
          blockSize: 26,
          disableBGPExport: false,
          encapsulation: "VXLANCrossSubnet",
          natOutgoing: "Enabled",
          nodeSelector: "all()",
          allowedUses: ["Workload", "Tunnel"],
          assignmentMode: "Automatic",
        },
      ],
    },
    controlPlaneReplicas: 2,
    flexVolumePath: "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
    kubeletVolumePluginPath: "/var/lib/kubelet",
    nodeUpdateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } },
    nonPrivileged: "Disabled",
    typhaMetricsPort: 9093,
  };
}

/** @public */
export function formerApiServer(): Json {
  return { apiVersion: OWN_API, kind: "APIServer", metadata: { name: "default" }, spec: {} };
}

/** What the operator rendered: owned by the Installation or by the APIServer. */
function formerComponents(version: FormerVersion, installation: Json): readonly Json[] {
  const protector = [`${product}.io/cni-protector`];
  const accounts = [FORMER_NODE_DAEMON_SET, `${product}-cni-plugin`].flatMap((name) => [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace: SYSTEM, finalizers: protector } },
    { apiVersion: `${RBAC}/v1`, kind: "ClusterRole", metadata: { name, finalizers: protector }, rules: READ_PODS },
    {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name, finalizers: protector },
      subjects: [{ kind: "ServiceAccount", name, namespace: SYSTEM }],
      roleRef: { kind: "ClusterRole", name, apiGroup: RBAC },
    },
  ]);
  const workloads = [
    nodeDaemonSet(version),
    deployment(version, FORMER_CONTROLLERS, SYSTEM),
    deployment(version, FORMER_TYPHA, SYSTEM),
  ];
  const labels = { name: SYSTEM, "pod-security.kubernetes.io/enforce": "privileged" };
  const owned = workloads.map((object) => ownedBy(object, installation));
  return [{ apiVersion: "v1", kind: "Namespace", metadata: { name: SYSTEM, labels } }, ...accounts, ...owned];
}

/**
 * The aggregated API: only its Deployment; the API itself is served by the test.
 * @public
 */
export function formerApiServerDeployment(version: FormerVersion): Json {
  return deployment(version, FORMER_API_SERVER.deployment, FORMER_API_SERVER.namespace);
}

const READ_PODS = [{ apiGroups: [""], resources: ["pods", "nodes", "namespaces"], verbs: ["get"] }];

function nodeDaemonSet(version: FormerVersion): Json {
  const labels = { "k8s-app": FORMER_NODE_DAEMON_SET };
  const image = (name: string) => `${REGISTRY}${product}/${name}:${version}`;
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: FORMER_NODE_DAEMON_SET, namespace: SYSTEM },
    spec: {
      selector: { matchLabels: labels },
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } },
      template: {
        metadata: { labels: { ...labels, "app.kubernetes.io/name": FORMER_NODE_DAEMON_SET } },
        spec: {
          hostNetwork: true,
          serviceAccountName: FORMER_NODE_DAEMON_SET,
          priorityClassName: "system-node-critical",
          terminationGracePeriodSeconds: 5,
          nodeSelector: { "kubernetes.io/os": "linux" },
          tolerations: [{ key: "CriticalAddonsOnly", operator: "Exists" }, { operator: "Exists" }],
          initContainers: [
            {
              name: "flexvol-driver",
              image: image("pod2daemon-flexvol"),
              volumeMounts: [{ name: "flexvol", mountPath: "/host/driver" }],
            },
            {
              name: "install-cni",
              image: image("cni"),
              command: ["/opt/cni/bin/install"],
              env: [{ name: "CNI_CONF_NAME", value: `10-${product}.conflist` }],
              volumeMounts: [{ name: "cni-bin-dir", mountPath: "/host/opt/cni/bin" }],
            },
          ],
          containers: [
            {
              name: FORMER_NODE_DAEMON_SET,
              image: image("node"),
              env: [
                { name: "DATASTORE_TYPE", value: "kubernetes" },
                // Now it comes from the node.
                { name: "NODE_NAME", value: "from-a-file" },
                { name: "NODENAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
                { name: "FELIX_HEALTHENABLED", value: "true" },
                { name: "FELIX_TYPHAK8SSERVICENAME", value: FORMER_TYPHA },
              ],
              lifecycle: { preStop: { exec: { command: [`/bin/${product}-node`, "-shutdown"] } } },
              livenessProbe: { httpGet: { host: "localhost", path: "/liveness", port: 9099 }, timeoutSeconds: 10 },
              readinessProbe: { exec: { command: [`/bin/${product}-node`, "-bird-ready", "-felix-ready"] } },
              securityContext: { privileged: true },
              volumeMounts: [{ name: "var-run", mountPath: `/var/run/${product}` }],
            },
          ],
          volumes: [
            { name: "flexvol", hostPath: { path: "/usr/libexec/kubernetes", type: "DirectoryOrCreate" } },
            { name: "cni-bin-dir", hostPath: { path: "/opt/cni/bin" } },
            { name: "var-run", hostPath: { path: `/var/run/${product}` } },
          ],
        },
      },
    },
  };
}

function deployment(version: FormerVersion, name: string, namespace: string): Json {
  const labels = { "k8s-app": name };
  const image = `${REGISTRY}${product}/${name.slice(product.length + 1)}:${version}`;
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace, labels },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { hostNetwork: true, containers: [{ name, image }] } },
    },
  };
}

function ownedBy(object: Json, owner: Json): Json {
  const { apiVersion, kind } = owner;
  const { name, uid } = Object(owner["metadata"]);
  const reference = { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
  return { ...object, metadata: { ...Object(object["metadata"]), ownerReferences: [reference] } };
}

const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/** Creates them and waits until they are served. */
export async function createFormerOperatorDefinitions(objects: ClusterObjects): Promise<void> {
  for (const definition of formerOperatorDefinitions()) await objects.create(DEFINITIONS, definition);
  const isServed = async () => (await objects.read(`/apis/${OWN_API}/installations`)) !== undefined;
  await pollUntil(isServed, "the API of the former operator");
}

/** What the operator did when it found an Installation, written by updates as the manager `operator`. */
export async function createFormerComponents(
  create: (object: Json) => Promise<unknown>,
  version: FormerVersion,
  installation: Json,
): Promise<void> {
  for (const object of formerComponents(version, installation)) await create(object);
}
