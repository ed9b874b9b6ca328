/**
 * A live object without what the API server has added to it, so that it can be compared with a manifest. A default value is left
 * out only if the manifest does not have the field. Pure.
 */
import { isObject } from "../../model/shape.ts";
import { isSame } from "./canonical-json.ts";
import { byKey, listRule } from "./list-keys.ts";

/** By the name of the field that has them; an item has the name of its list. */
const DEFAULTS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  spec: {
    revisionHistoryLimit: 10,
    progressDeadlineSeconds: 600,
    replicas: 1,
    updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } },
    strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: "25%" } },
    minReadySeconds: 0,
    restartPolicy: "Always",
    dnsPolicy: "ClusterFirst",
    schedulerName: "default-scheduler",
    terminationGracePeriodSeconds: 30,
    securityContext: {},
    attachRequired: true,
    podInfoOnMount: false,
    fsGroupPolicy: "ReadWriteOnceWithFSType",
    requiresRepublish: false,
    seLinuxMount: false,
    storageCapacity: false,
    volumeLifecycleModes: ["Persistent"],
    preventPodSchedulingIfMissing: false,
  },
  rollingUpdate: { maxSurge: 0, maxUnavailable: 1 },
  containers: { terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File", resources: {} },
  initContainers: { terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File", resources: {} },
  ports: { protocol: "TCP" },
  livenessProbe: { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 },
  readinessProbe: { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 },
  httpGet: { scheme: "HTTP" },
  fieldRef: { apiVersion: "v1" },
  hostPath: { type: "" },
  configMap: { defaultMode: 420 },
  secret: { defaultMode: 420 },
};

const SERVER_FIELDS = [
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "managedFields",
  "selfLink",
  "ownerReferences",
  "finalizers",
];
const SERVER_ANNOTATIONS = [
  "kubectl.kubernetes.io/last-applied-configuration",
  "kubectl.kubernetes.io/restartedAt",
  "deprecated.daemonset.template.generation",
  "deployment.kubernetes.io/revision",
];

export function withoutServerFields(live: Readonly<Record<string, unknown>>, manifest: unknown): object {
  const { status: _, ...rest } = live;
  const metadata = isObject(rest["metadata"]) ? rest["metadata"] : {};
  const kept = Object.fromEntries(Object.entries(metadata).filter(([name]) => !SERVER_FIELDS.includes(name)));
  return asObject(withoutDefaults({ ...rest, metadata: kept }, manifest, ""));
}

/** `null` is the same as absent. */
function withoutDefaults(live: unknown, manifest: unknown, name: string): unknown {
  if (Array.isArray(live))
    return live.map((item, index) => withoutDefaults(item, counterpart(live, manifest, name)(index), name));
  if (!isObject(live)) return live;
  const given = asObject(manifest);
  const members = Object.entries(live).flatMap(([field, value]) => {
    if (value === null) return [];
    if (given[field] === undefined && isDefault(name, field, value, live)) return [];
    const inner = withoutDefaults(value, given[field], field);
    const hasBecomeEmpty = isEmpty(inner) && !isEmpty(value) && given[field] === undefined;
    return hasBecomeEmpty ? [] : [[field, inner] as const];
  });
  return Object.fromEntries(members);
}

/** The item of the manifest's list that the one of the live list is compared with. */
function counterpart(live: readonly unknown[], manifest: unknown, name: string): (index: number) => unknown {
  const given = Array.isArray(manifest) ? manifest : [];
  const rule = listRule(name, [live, given]);
  if (rule === undefined) return (index) => given[index];
  const items = byKey(given, rule);
  return (index) => items.get(rule.keyOf(live[index]) ?? "");
}

function isDefault(
  parent: string,
  field: string,
  value: unknown,
  siblings: Readonly<Record<string, unknown>>,
): boolean {
  if (parent === "annotations") return SERVER_ANNOTATIONS.includes(field);
  if (field === "imagePullPolicy") return value === "IfNotPresent";
  // The old name of the same field, and the port of a pod in the network of its host.
  if (field === "serviceAccount") return value === siblings["serviceAccountName"];
  if (field === "hostPort") return value === siblings["containerPort"];
  const defaults = DEFAULTS[parent];
  if (defaults === undefined || !Object.hasOwn(defaults, field)) return false;
  if (field === "updateStrategy" || field === "strategy") return isDefaultStrategy(value, defaults[field]);
  return isSame(value, defaults[field]);
}

function isDefaultStrategy(value: unknown, standard: unknown): boolean {
  return isSame(withoutDefaults(value, undefined, ""), withoutDefaults(standard, undefined, ""));
}

function isEmpty(value: unknown): boolean {
  return isObject(value) && Object.keys(value).length === 0;
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {};
}
