/**
 * The console, if it is switched on: one replica with an account that may do nothing. Every question goes to the API server with
 * the token of the reader, so the pod gets none of its own, only the authority of the API server. Its certificate is made by the
 * controllers. With etcd it reads the datastore as the controllers do, and asks the API server what the reader may list. Pure.
 */
import { identity } from "../../identity.ts";
import type { KubeObject } from "../kube-object.ts";
import { accountObject, namespacedRoleObjects, type Place } from "../roles/role-objects.ts";
import { certificateRules } from "../roles/rules.ts";
import {
  CONSOLE,
  CONSOLE_HEALTH_PATH,
  CONSOLE_HEALTH_PORT,
  CONSOLE_HOSTS,
  CONSOLE_PORT,
  CONSOLE_TLS_MOUNT,
  podLabels,
  TLS_KEYS,
} from "./names.ts";
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
  type Volume,
} from "./pod-parts.ts";
import type { RenderPlan } from "./render-plan.ts";

const HTTPS = 443;

/** What a pod without a token of its own lacks: every namespace has this ConfigMap. */
const API_AUTHORITY = "kube-root-ca.crt";
/** Where a program looks for it in a pod. */
const ACCOUNT_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount";

const RESOURCES = { requests: { cpu: "50m", memory: "128Mi" }, limits: { memory: "1Gi" } } as const;

export function consoleObjects(plan: RenderPlan): readonly KubeObject[] {
  const { namespace } = plan.facts;
  const place: Place = { name: CONSOLE, namespace };
  return [
    { ...accountObject(place), automountServiceAccountToken: false },
    ...namespacedRoleObjects(place, certificateRules(CONSOLE), { name: identity.controllers, namespace }),
    service(place, plan.installation.console.hosts),
    deployment(plan, place),
  ];
}

/** The controllers read the hosts there, so that neither they nor the console are replaced when the hosts change. */
function service(place: Place, hosts: readonly string[]): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { ...place, annotations: { [CONSOLE_HOSTS]: hosts.join(",") } },
    spec: {
      type: "ClusterIP",
      selector: podLabels(CONSOLE),
      ports: [{ name: "https", port: HTTPS, protocol: "TCP", targetPort: CONSOLE_PORT }],
    },
  };
}

function deployment(plan: RenderPlan, place: Place): KubeObject {
  const labels = podLabels(CONSOLE);
  const volumes = [tlsVolume(), authorityVolume(), ...etcdVolumes(plan)];
  const annotations = etcdSecretAnnotation(plan);
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: place,
    spec: {
      // Sessions are in its memory.
      replicas: 1,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels, ...(Object.keys(annotations).length === 0 ? {} : { annotations }) },
        spec: {
          serviceAccountName: CONSOLE,
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          ...pullSecrets(plan),
          ...SHARED_PROCESS_NAMESPACE,
          ...controlPlanePlacement(plan),
          securityContext: UNPRIVILEGED_POD,
          containers: [container(plan, volumes)],
          volumes: volumes.map(({ volume }) => volume),
        },
      },
    },
  };
}

function container(plan: RenderPlan, volumes: readonly Volume[]) {
  return {
    name: CONSOLE,
    ...containerBase(plan),
    command: [CONSOLE],
    env: [
      ...datastoreEnvironment(plan),
      fromField("POD_NAMESPACE", "metadata.namespace"),
      { name: "CONSOLE_PORT", value: String(CONSOLE_PORT) },
      { name: "HEALTH_PORT", value: String(CONSOLE_HEALTH_PORT) },
      { name: "TLS_CERT_FILE", value: `${CONSOLE_TLS_MOUNT}/${TLS_KEYS.certificate}` },
      { name: "TLS_KEY_FILE", value: `${CONSOLE_TLS_MOUNT}/${TLS_KEYS.key}` },
      ...plan.console,
      ...apiEndpoint(plan),
    ],
    ports: [{ name: "https", containerPort: CONSOLE_PORT, protocol: "TCP" }],
    readinessProbe: {
      httpGet: { port: CONSOLE_HEALTH_PORT, path: CONSOLE_HEALTH_PATH },
      periodSeconds: 10,
      timeoutSeconds: 10,
    },
    resources: RESOURCES,
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    },
    volumeMounts: volumes.map(({ mount }) => mount),
  };
}

/** Without the key of the authority. The pod waits until the controllers have made it. */
function tlsVolume(): Volume {
  const name = "tls";
  const items = [TLS_KEYS.certificate, TLS_KEYS.key].map((key) => ({ key, path: key }));
  return {
    volume: { name, secret: { secretName: CONSOLE, defaultMode: 0o440, items } },
    mount: { name, mountPath: CONSOLE_TLS_MOUNT, readOnly: true },
  };
}

function authorityVolume(): Volume {
  const name = "api-authority";
  return {
    volume: { name, configMap: { name: API_AUTHORITY, items: [{ key: "ca.crt", path: "ca.crt" }] } },
    mount: { name, mountPath: ACCOUNT_DIRECTORY, readOnly: true },
  };
}
