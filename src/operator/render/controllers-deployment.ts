/** The Deployment of the controllers: in the network of pods; one replica works, the others are standbys. Pure. */
import { identity } from "../../identity.ts";
import type { KubeObject } from "../kube-object.ts";
import { CONTROLLERS_HEALTH_PORT, podLabels } from "./names.ts";
import type { RenderPlan } from "./plan.ts";
import { apiEndpoint, containerBase, etcdSecretAnnotation, etcdVolumes, fromField, pullSecrets } from "./pod-parts.ts";

/** Of no account of the image: nothing in the container belongs to it. */
const USER = 65_532;

export function controllersDeployment(plan: RenderPlan): KubeObject {
  const { controlPlane, overrides } = plan.installation;
  const labels = podLabels(identity.controllers);
  const volumes = etcdVolumes(plan);
  const annotations = etcdSecretAnnotation(plan);
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: identity.controllers, namespace: plan.facts.namespace },
    spec: {
      replicas: controlPlane.replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels, ...(Object.keys(annotations).length === 0 ? {} : { annotations }) },
        spec: {
          serviceAccountName: identity.controllers,
          ...pullSecrets(plan),
          priorityClassName: "system-cluster-critical",
          nodeSelector: {
            "kubernetes.io/os": "linux",
            ...controlPlane.nodeSelector,
            ...overrides.controllers.nodeSelector,
          },
          tolerations: overrides.controllers.tolerations ?? [...CONTROL_PLANE_TOLERATIONS, ...controlPlane.tolerations],
          affinity: overrides.controllers.affinity ?? apartFrom(labels),
          securityContext: {
            runAsNonRoot: true,
            runAsUser: USER,
            runAsGroup: USER,
            fsGroup: USER,
            seccompProfile: { type: "RuntimeDefault" },
          },
          containers: [container(plan)],
          ...(volumes.length === 0 ? {} : { volumes: volumes.map(({ volume }) => volume) }),
        },
      },
    },
  };
}

/** While a node is drained, one of the replicas goes on. */
export function controllersDisruptionBudget({ facts }: RenderPlan): KubeObject {
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: identity.controllers, namespace: facts.namespace },
    spec: { maxUnavailable: 1, selector: { matchLabels: podLabels(identity.controllers) } },
  };
}

function container(plan: RenderPlan) {
  const { datastore, overrides } = plan.installation;
  const { resources } = overrides.controllers;
  const volumes = etcdVolumes(plan);
  return {
    name: identity.controllers,
    ...containerBase(plan),
    command: [identity.controllers],
    env: [
      { name: "DATASTORE_TYPE", value: datastore.type === "Etcd" ? "etcdv3" : "kubernetes" },
      ...plan.etcd.endpoints,
      ...plan.etcd.files,
      fromField("POD_NAMESPACE", "metadata.namespace"),
      fromField("POD_NAME", "metadata.name"),
      ...apiEndpoint(plan),
    ],
    livenessProbe: { ...check("/liveness"), initialDelaySeconds: 10, timeoutSeconds: 10, failureThreshold: 6 },
    readinessProbe: { ...check("/readiness"), timeoutSeconds: 10 },
    ...(resources === undefined ? {} : { resources }),
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
    ...(volumes.length === 0 ? {} : { volumeMounts: volumes.map(({ mount }) => mount) }),
  };
}

function check(path: string) {
  return { httpGet: { port: CONTROLLERS_HEALTH_PORT, path }, periodSeconds: 10 };
}

const CONTROL_PLANE_TOLERATIONS = [
  { key: "CriticalAddonsOnly", operator: "Exists" },
  { key: "node-role.kubernetes.io/control-plane", operator: "Exists", effect: "NoSchedule" },
] as const;

/** On different nodes if there are several; on one, all replicas run there. */
function apartFrom(labels: Readonly<Record<string, string>>) {
  const term = { labelSelector: { matchLabels: labels }, topologyKey: "kubernetes.io/hostname" };
  return {
    podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm: term }] },
  };
}
