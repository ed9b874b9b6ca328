/**
 * The Deployment of the controllers: one replica works, the others are standbys. Pure.
 *
 * They run in the network of pods, unless the datastore is etcd: there they write the profiles without which the node
 * agents let no packet of a pod pass, so they need a network that does not depend on them. In the network of the host two
 * replicas of one node share a port: the second listens on it as soon as the first has ended. So the port is not declared, or
 * the second would never run on a cluster of one node.
 */
import { identity } from "../../identity.ts";
import type { KubeObject } from "../kube-object.ts";
import { CONTROLLERS_HEALTH_PORT, podLabels } from "./names.ts";
import {
  apiEndpoint,
  containerBase,
  controlPlanePlacement,
  datastoreEnvironment,
  etcdSecretAnnotation,
  etcdVolumes,
  fromField,
  pullSecrets,
  SHARED_PROCESS_NAMESPACE,
  UNPRIVILEGED_POD,
} from "./pod-parts.ts";
import type { RenderPlan } from "./render-plan.ts";

export function controllersDeployment(plan: RenderPlan): KubeObject {
  const { controlPlane, overrides } = plan.installation;
  const labels = podLabels(identity.controllers);
  const placement = controlPlanePlacement(plan);
  const volumes = etcdVolumes(plan);
  const annotations = etcdSecretAnnotation(plan);
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: identity.controllers, namespace: plan.facts.namespace },
    spec: {
      replicas: controlPlane.replicas,
      ...(isInHost(plan) ? { strategy: OLD_FIRST } : {}),
      selector: { matchLabels: labels },
      template: {
        metadata: { labels, ...(Object.keys(annotations).length === 0 ? {} : { annotations }) },
        spec: {
          serviceAccountName: identity.controllers,
          ...pullSecrets(plan),
          priorityClassName: "system-cluster-critical",
          ...(isInHost(plan) ? { hostNetwork: true, dnsPolicy: "Default" } : {}),
          ...SHARED_PROCESS_NAMESPACE,
          nodeSelector: { ...placement.nodeSelector, ...overrides.controllers.nodeSelector },
          tolerations: overrides.controllers.tolerations ?? placement.tolerations,
          affinity: overrides.controllers.affinity ?? apartFrom(labels),
          securityContext: UNPRIVILEGED_POD,
          containers: [container(plan)],
          ...(volumes.length === 0 ? {} : { volumes: volumes.map(({ volume }) => volume) }),
        },
      },
    },
  };
}

function isInHost({ installation }: RenderPlan): boolean {
  return installation.datastore.type === "Etcd";
}

/** A new replica has the port of the host for itself. */
const OLD_FIRST = { type: "RollingUpdate", rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } as const;

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
  const { overrides } = plan.installation;
  const { resources } = overrides.controllers;
  const volumes = etcdVolumes(plan);
  return {
    name: identity.controllers,
    ...containerBase(plan),
    command: [identity.controllers],
    env: [
      ...datastoreEnvironment(plan),
      fromField("POD_NAMESPACE", "metadata.namespace"),
      fromField("POD_NAME", "metadata.name"),
      ...plan.controllers,
      ...apiEndpoint(plan),
    ],
    readinessProbe: {
      httpGet: { ...(isInHost(plan) ? { host: "127.0.0.1" } : {}), port: CONTROLLERS_HEALTH_PORT, path: "/readiness" },
      periodSeconds: 10,
      timeoutSeconds: 10,
    },
    ...(resources === undefined ? {} : { resources }),
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
    ...(volumes.length === 0 ? {} : { volumeMounts: volumes.map(({ mount }) => mount) }),
  };
}

/** On different nodes if there are several; on one, all replicas run there. */
function apartFrom(labels: Readonly<Record<string, string>>) {
  const term = { labelSelector: { matchLabels: labels }, topologyKey: "kubernetes.io/hostname" };
  return {
    podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm: term }] },
  };
}
