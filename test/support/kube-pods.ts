/** Pods of test clusters: their manifests, and what the API server says about them. */
import { AGNHOST_IMAGE } from "./kube-images.ts";
import type { Kubectl } from "./kubectl.ts";

export interface PodPlan {
  readonly name: string;
  readonly namespace: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  /** Fields of the spec, for example `nodeName` or `serviceAccountName`. */
  readonly spec?: Readonly<Record<string, unknown>>;
  /** Leads to its port. */
  readonly hostPort?: number;
  /** How long it still runs after it was told to end; absent: not at all. */
  readonly shutdownSeconds?: number;
}

export interface Pod {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
  };
  readonly status: {
    readonly phase: string;
    /** When the kubelet has accepted it. */
    readonly startTime?: string;
    readonly podIP?: string;
    readonly podIPs?: readonly { readonly ip: string }[];
    readonly containerStatuses?: readonly {
      readonly restartCount: number;
      readonly ready: boolean;
      readonly state?: { readonly running?: { readonly startedAt: string } };
    }[];
  };
}

/** The port of its HTTP server. */
export const POD_PORT = 80;

const LIMIT = "--timeout=60s";

/** A pod that serves HTTP and is Ready when it responds. `apply` takes it. */
export function podManifest(plan: PodPlan): string {
  const { name, namespace, annotations, labels } = plan;
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, annotations, labels },
    spec: podSpec(plan),
  });
}

/** A Deployment or a StatefulSet of such pods; its pods have the label `app=<name>`. */
export function workloadManifest(
  kind: "Deployment" | "StatefulSet",
  plan: PodPlan & { readonly replicas: number },
): string {
  const { name, namespace, annotations, replicas } = plan;
  const labels = { app: name, ...plan.labels };
  return JSON.stringify({
    apiVersion: "apps/v1",
    kind,
    metadata: { name, namespace },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      ...(kind === "StatefulSet" ? { serviceName: name } : {}),
      template: { metadata: { annotations, labels }, spec: podSpec(plan) },
    },
  });
}

function podSpec({ spec, hostPort, shutdownSeconds = 0 }: PodPlan): object {
  const response = { httpGet: { path: "/hostname", port: POD_PORT }, timeoutSeconds: 5 };
  return {
    terminationGracePeriodSeconds: shutdownSeconds + 1,
    containers: [
      {
        name: "main",
        image: AGNHOST_IMAGE,
        imagePullPolicy: "Never",
        args: ["netexec", `--http-port=${POD_PORT}`, "--udp-port=-1", `--delay-shutdown=${shutdownSeconds}`],
        ports: [{ containerPort: POD_PORT, ...(hostPort === undefined ? {} : { hostPort }) }],
        startupProbe: { ...response, periodSeconds: 1, failureThreshold: 60 },
        readinessProbe: { ...response, periodSeconds: 1 },
        livenessProbe: { tcpSocket: { port: POD_PORT }, periodSeconds: 5, timeoutSeconds: 5, failureThreshold: 6 },
      },
    ],
    ...spec,
  };
}

export async function readPod(server: Kubectl, namespace: string, name: string): Promise<Pod> {
  return await server.get("pod", name, `--namespace=${namespace}`);
}

/** Waits until it is Ready; returns it. */
export async function untilPodReady(server: Kubectl, namespace: string, name: string): Promise<Pod> {
  await server.kubectl(["wait", "--for=create", `pod/${name}`, `--namespace=${namespace}`, LIMIT]);
  await server.kubectl(["wait", "--for=condition=Ready", `pod/${name}`, `--namespace=${namespace}`, LIMIT]);
  return await readPod(server, namespace, name);
}

/** Deletes it and waits until it is gone. */
export async function deletePod(server: Kubectl, namespace: string, name: string): Promise<void> {
  await server.kubectl(["delete", "pod", name, `--namespace=${namespace}`, LIMIT]);
}

/** Deletes all pods of the namespace, with what would replace them, and waits until they are gone. */
export async function deleteAllPods(server: Kubectl, namespace: string): Promise<void> {
  await server.kubectl(["delete", "deployments,statefulsets", "--all", `--namespace=${namespace}`, LIMIT]);
  await server.kubectl(["delete", "pods", "--all", `--namespace=${namespace}`, LIMIT]);
}

export function addressesOf({ status }: Pod): readonly string[] {
  return (status.podIPs ?? []).map(({ ip }) => ip);
}
