/** What the pods of several workloads have in common. Pure. */
import { imageName } from "./image.ts";
import { ETCD_SECRET_HASH, ETCD_SECRETS_MOUNT, NETWORK_CONFIG_MAP, NETWORK_CONFIG_MOUNT } from "./names.ts";
import type { EnvironmentVariable, RenderPlan } from "./render-plan.ts";

export interface Volume {
  readonly volume: { readonly name: string; readonly [source: string]: unknown };
  readonly mount: { readonly name: string; readonly mountPath: string; readonly readOnly: true };
}

/** Of every container; `imagePullPolicy` is what it is by default for a tag other than `latest`. */
export function containerBase({ installation, facts, environmentFrom }: RenderPlan) {
  return {
    image: imageName(installation.image, facts.version),
    imagePullPolicy: "IfNotPresent",
    ...(environmentFrom.length === 0 ? {} : { envFrom: environmentFrom }),
  };
}

export function pullSecrets({ installation }: RenderPlan) {
  const { pullSecrets: names } = installation.image;
  return names.length === 0 ? {} : { imagePullSecrets: names.map((name) => ({ name })) };
}

/** Without kube-proxy, the address of the API server's Service leads nowhere. */
export function apiEndpoint({ facts }: RenderPlan): readonly EnvironmentVariable[] {
  if (facts.apiEndpoint === undefined) return [];
  const { host, port } = facts.apiEndpoint;
  return [
    { name: "KUBERNETES_SERVICE_HOST", value: host },
    { name: "KUBERNETES_SERVICE_PORT", value: port },
  ];
}

export function fromField(name: string, fieldPath: string): EnvironmentVariable {
  return { name, valueFrom: { fieldRef: { fieldPath } } };
}

/**
 * Of a container in the network of the host, which listens on this port of loopback. No container of ours has a
 * liveness probe: anything that reaches the port could keep it from being answered. The programs end themselves instead
 * (health/watchdog.ts).
 */
export function hostReadinessProbe(port: number) {
  return { httpGet: { host: "127.0.0.1", port, path: "/readiness" }, periodSeconds: 5, timeoutSeconds: 5 };
}

/** Then the first process is that of the pod: a program that is not the first process of its PID namespace is ended by the kernel if it is blocked. */
export const SHARED_PROCESS_NAMESPACE = { shareProcessNamespace: true } as const;

export function networkConfigVolume(): Volume {
  const name = "network-config";
  return {
    volume: { name, configMap: { name: NETWORK_CONFIG_MAP } },
    mount: { name, mountPath: NETWORK_CONFIG_MOUNT, readOnly: true },
  };
}

/** Of no account of the image: nothing in the container belongs to it. */
const USER = 65_532;

/** Of pods that need nothing of the host. */
export const UNPRIVILEGED_POD = {
  runAsNonRoot: true,
  runAsUser: USER,
  runAsGroup: USER,
  fsGroup: USER,
  seccompProfile: { type: "RuntimeDefault" },
} as const;

const CONTROL_PLANE_TOLERATIONS = [
  { key: "CriticalAddonsOnly", operator: "Exists" },
  { key: "node-role.kubernetes.io/control-plane", operator: "Exists", effect: "NoSchedule" },
] as const;

/** Where pods of the control plane may run. */
export function controlPlanePlacement({ installation: { controlPlane } }: RenderPlan) {
  return {
    nodeSelector: { "kubernetes.io/os": "linux", ...controlPlane.nodeSelector },
    tolerations: [...CONTROL_PLANE_TOLERATIONS, ...controlPlane.tolerations],
  };
}

/** How a program reaches the datastore, except for its own account. */
export function datastoreEnvironment({ installation, etcd }: RenderPlan): readonly EnvironmentVariable[] {
  return [
    { name: "DATASTORE_TYPE", value: installation.datastore.type === "Etcd" ? "etcdv3" : "kubernetes" },
    ...[...etcd.endpoints, ...etcd.discovery, ...etcd.files],
  ];
}

/** None, or the certificates of etcd: readable by the group of the pod, if it has one. */
export function etcdVolumes({ installation: { datastore } }: RenderPlan): readonly Volume[] {
  if (datastore.type !== "Etcd" || datastore.secretName === undefined) return [];
  const name = "etcd-secrets";
  return [
    {
      volume: { name, secret: { secretName: datastore.secretName, defaultMode: 0o440 } },
      mount: { name, mountPath: ETCD_SECRETS_MOUNT, readOnly: true },
    },
  ];
}

/** Pods read the certificates once, at their start. */
export function etcdSecretAnnotation({ facts }: RenderPlan): Readonly<Record<string, string>> {
  return facts.etcdSecretHash === undefined ? {} : { [ETCD_SECRET_HASH]: facts.etcdSecretHash };
}

export function hashOf(object: unknown): string {
  return new Bun.CryptoHasher("sha256").update(JSON.stringify(object)).digest("hex");
}
