/**
 * The objects of a connectivity test. Pure.
 *
 *   node-1                                   node-2
 *   server-1     serves 8080 and 8081        server-2
 *   client-1     tries everything            client-2
 *   host-1       on the host's network:      host-2
 *                serves and tries
 *   host-port-1  behind a host port
 *
 * Each server has a Service of its own, so that a Service whose pod is on another node is tried too.
 */
import { identity } from "../../identity.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import type { Probe } from "./probe.ts";

/** The port of servers, and one more that the policy of the test does not allow. */
export const SERVER_PORT = 8080;
export const OTHER_PORT = 8081;

export interface TestPlan {
  readonly namespace: string;
  readonly image: string;
  /** Names of Secrets in the namespace of the test. */
  readonly pullSecrets: readonly string[];
  /** Of the host that forwards to the pod `host-port-1`. The next one is that of the pods on the host's network. */
  readonly hostPort: number;
}

export interface PodPlace {
  readonly role: "server" | "client" | "host" | "host-port";
  /** From 1: the number of its node among those of the test. */
  readonly number: number;
  readonly node: string;
}

const ROLE_LABEL = `${identity.labelPrefix}connectivity-test`;
/** The pods end by themselves if nobody could delete the namespace. */
const LIFETIME_SECONDS = 1_800;
/** Not a user that any image or host has. */
const USER = 65_532;

export function podName({ role, number }: Pick<PodPlace, "role" | "number">): string {
  return `${role}-${number}`;
}

export function hostServerPort({ hostPort }: Pick<TestPlan, "hostPort">): number {
  return hostPort + 1;
}

export function namespaceObject(name: string): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: {
      name,
      labels: {
        "app.kubernetes.io/managed-by": identity.adminTool,
        // A host port and the host's network are not allowed in less.
        "pod-security.kubernetes.io/enforce": "privileged",
        "pod-security.kubernetes.io/warn": "privileged",
        "pod-security.kubernetes.io/audit": "privileged",
      },
    },
  };
}

/** Its own account, which exists before the pods: the default one of a new namespace may not. */
export function accountObject({ namespace, pullSecrets }: TestPlan): KubeObject {
  return {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { name: "test", namespace },
    imagePullSecrets: pullSecrets.map((name) => ({ name })),
    automountServiceAccountToken: false,
  };
}

export function podObject(plan: TestPlan, place: PodPlace, probes: readonly Probe[] = []): KubeObject {
  const { namespace, image, pullSecrets } = plan;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: podName(place), namespace, labels: { [ROLE_LABEL]: place.role, app: podName(place) } },
    spec: {
      serviceAccountName: "test",
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      restartPolicy: "Never",
      activeDeadlineSeconds: LIFETIME_SECONDS,
      terminationGracePeriodSeconds: 1,
      ...(place.role === "host" ? { hostNetwork: true, dnsPolicy: "ClusterFirstWithHostNet" } : {}),
      imagePullSecrets: pullSecrets.map((name) => ({ name })),
      affinity: onNode(place.node),
      tolerations: [{ operator: "Exists" }],
      securityContext: { runAsNonRoot: true, runAsUser: USER, runAsGroup: USER, seccompProfile: RUNTIME_DEFAULT },
      containers: [
        {
          name: "test",
          image,
          imagePullPolicy: "IfNotPresent",
          command: [identity.adminTool, "connectivity", ...argumentsOf(plan, place, probes)],
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
          ...servedBy(plan, place),
        },
      ],
    },
  };
}

const RUNTIME_DEFAULT = { type: "RuntimeDefault" };

/** By the name of the Node itself: the label of its host name may be another. The scheduler still checks what the pod needs. */
function onNode(name: string): object {
  const matchFields = [{ key: "metadata.name", operator: "In", values: [name] }];
  const nodeSelectorTerms = [{ matchFields }];
  return { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } };
}

function argumentsOf(plan: TestPlan, { role }: PodPlace, probes: readonly Probe[]): readonly string[] {
  switch (role) {
    case "server":
      return ["serve", String(SERVER_PORT), String(OTHER_PORT)];
    case "host-port":
      return ["serve", String(SERVER_PORT)];
    case "client":
      return ["probe", JSON.stringify(probes)];
    case "host":
      return ["probe", `--listen=${hostServerPort(plan)}`, JSON.stringify(probes)];
  }
}

/** A server is ready as soon as its kubelet reaches it. */
function servedBy(plan: TestPlan, { role }: PodPlace): object {
  if (role === "client") return {};
  // The scheduler and the kubelet refuse a second pod with the same port of the host.
  if (role === "host") return { ports: [{ containerPort: hostServerPort(plan), hostPort: hostServerPort(plan) }] };
  const hostPort = role === "host-port" ? { hostPort: plan.hostPort } : {};
  return {
    ports: [{ containerPort: SERVER_PORT, ...hostPort }],
    readinessProbe: { httpGet: { path: "/", port: SERVER_PORT }, periodSeconds: 1, timeoutSeconds: 2 },
  };
}

export function serviceObject({ namespace }: TestPlan, server: PodPlace): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: podName(server), namespace },
    spec: {
      ipFamilyPolicy: "PreferDualStack",
      selector: { app: podName(server) },
      ports: [{ port: SERVER_PORT, targetPort: SERVER_PORT }],
    },
  };
}

export type PolicyPhase = "deny ingress" | "allow ingress" | "deny egress";

/** They add up: the allowed port is one that the first policy denies, and the last one applies to the clients. */
export function policyObject({ namespace }: TestPlan, phase: PolicyPhase): KubeObject {
  const role = phase === "deny egress" ? "client" : "server";
  const fromClients = {
    from: [{ podSelector: { matchLabels: { [ROLE_LABEL]: "client" } } }],
    ports: [{ protocol: "TCP", port: SERVER_PORT }],
  };
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: phase.replace(" ", "-"), namespace },
    spec: {
      podSelector: { matchLabels: { [ROLE_LABEL]: role } },
      policyTypes: [phase === "deny egress" ? "Egress" : "Ingress"],
      ...(phase === "allow ingress" ? { ingress: [fromClients] } : {}),
    },
  };
}
