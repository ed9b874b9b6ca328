/**
 * What the releases v3.15 to v3.29 published at the places of their manifests that an upgrade compares, in all their patches and
 * variants: such a value is the release's, also if the installation is compared with another minor release. Absent values are
 * `undefined`. Pure.
 */
import { identity } from "../../identity.ts";
import { isSame } from "../merge/canonical-json.ts";
import { withoutServerFields } from "../merge/server-defaults.ts";

/** The first and the last minor release of v3 that are known. */
export const PUBLISHED_MINORS = { first: 15, last: 29 } as const;

export type PublishedWorkload = "DaemonSet" | "Deployment";

/** A value, and the minor releases of v3 that had it: from some patch of the first to some patch of the last. */
export interface PublishedValue {
  readonly value: unknown;
  readonly first: number;
  readonly last: number;
}

const { first: FIRST, last: LAST } = PUBLISHED_MINORS;
const always = (value: unknown): PublishedValue => ({ value, first: FIRST, last: LAST });
const during = (first: number, last: number, value: unknown): PublishedValue => ({ value, first, last });

const OS = { "kubernetes.io/os": "linux" };
const EXISTS = { operator: "Exists" };
const CRITICAL = { key: "CriticalAddonsOnly", ...EXISTS };
const MASTER = { key: "node-role.kubernetes.io/master", effect: "NoSchedule" };
const CONTROL_PLANE = { key: "node-role.kubernetes.io/control-plane", effect: "NoSchedule" };
const PROGRAM = `/bin/${identity.nodeAgent}`;
const SECCOMP = { seccompProfile: { type: "RuntimeDefault" } };

const liveness = (...flags: readonly string[]) => ({
  exec: { command: [PROGRAM, ...flags] },
  periodSeconds: 10,
  initialDelaySeconds: 10,
  failureThreshold: 6,
});
const readiness = (...flags: readonly string[]) => ({ exec: { command: [PROGRAM, ...flags] }, periodSeconds: 10 });
const HTTP_READINESS = { httpGet: { path: "/readiness", port: 9099, host: "localhost" }, periodSeconds: 10 };
const CHECK = { exec: { command: ["/usr/bin/check-status", "-l"] }, periodSeconds: 10, initialDelaySeconds: 10 };
const TIMEOUT = { timeoutSeconds: 10 };

/** Fields of the spec of pods. What is not listed was never set. */
export const PUBLISHED_POD_FIELDS: Readonly<
  Record<PublishedWorkload, Readonly<Record<string, readonly PublishedValue[]>>>
> = {
  DaemonSet: {
    tolerations: [always([{ effect: "NoSchedule", ...EXISTS }, CRITICAL, { effect: "NoExecute", ...EXISTS }])],
    nodeSelector: [always(OS)],
    priorityClassName: [always("system-node-critical")],
    terminationGracePeriodSeconds: [always(0)],
    securityContext: [during(FIRST, 28, undefined), during(29, LAST, SECCOMP)],
  },
  Deployment: {
    tolerations: [during(FIRST, 23, [CRITICAL, MASTER]), during(24, LAST, [CRITICAL, MASTER, CONTROL_PLANE])],
    nodeSelector: [always(OS)],
    priorityClassName: [always("system-cluster-critical")],
    securityContext: [during(FIRST, 28, undefined), during(29, LAST, SECCOMP)],
  },
};

/** Fields of the product's own container. What is not listed was never set. */
export const PUBLISHED_CONTAINER_FIELDS: Readonly<
  Record<PublishedWorkload, Readonly<Record<string, readonly PublishedValue[]>>>
> = {
  DaemonSet: {
    resources: [always({ requests: { cpu: "250m" } })],
    securityContext: [always({ privileged: true })],
    envFrom: [
      during(FIRST, FIRST, undefined),
      during(16, LAST, [{ configMapRef: { name: "kubernetes-services-endpoint", optional: true } }]),
    ],
    lifecycle: [
      during(FIRST, 20, undefined),
      during(20, LAST, { preStop: { exec: { command: [PROGRAM, "-shutdown"] } } }),
    ],
    livenessProbe: [
      during(FIRST, 19, liveness("-felix-live", "-bird-live")),
      during(FIRST, 19, liveness("-felix-live")),
      during(17, LAST, { ...liveness("-felix-live", "-bird-live"), ...TIMEOUT }),
      during(17, LAST, { ...liveness("-felix-live"), ...TIMEOUT }),
    ],
    readinessProbe: [
      during(FIRST, 19, readiness("-felix-ready", "-bird-ready")),
      during(FIRST, 19, readiness("-felix-ready")),
      during(FIRST, 19, HTTP_READINESS),
      during(17, LAST, { ...readiness("-felix-ready", "-bird-ready"), ...TIMEOUT }),
      during(17, LAST, { ...readiness("-felix-ready"), ...TIMEOUT }),
      during(17, LAST, { ...HTTP_READINESS, ...TIMEOUT }),
    ],
  },
  Deployment: {
    securityContext: [during(FIRST, 28, undefined), during(29, LAST, { runAsNonRoot: true })],
    livenessProbe: [
      during(FIRST, 18, undefined),
      during(19, 19, { ...CHECK, failureThreshold: 6 }),
      during(17, LAST, { ...CHECK, failureThreshold: 6, ...TIMEOUT }),
    ],
    readinessProbe: [always({ exec: { command: ["/usr/bin/check-status", "-r"] }, periodSeconds: 10 })],
  },
};

/** Mounts of the node agent's container: the volume by the path. */
const PUBLISHED_MOUNTS: Readonly<Record<string, string>> = {
  "/lib/modules": "lib-modules",
  "/run/xtables.lock": "xtables-lock",
  "/host/etc/cni/net.d": "cni-net-dir",
  "/sys/fs/": "sysfs",
  "/sys/fs/bpf": "bpffs",
  "/var/run/nodeagent": "policysync",
  [`/var/lib/${identity.product}`]: `var-lib-${identity.product}`,
  [`/var/run/${identity.product}`]: `var-run-${identity.product}`,
  [`/var/log/${identity.product}/cni`]: "cni-log-dir",
  [`/${identity.product}-secrets`]: "etcd-certs",
};

/** Variables of the container that installed the plugin which this release has no use for, by the field of the pod that they had. */
const PUBLISHED_INSTALL_VARIABLES: Readonly<Record<string, string>> = {
  [`${identity.environmentPrefix}CNI_SERVICE_ACCOUNT`]: "spec.serviceAccountName",
};

/** A place in a workload. */
export interface PublishedPlace {
  readonly workload: PublishedWorkload;
  /** `tolerations`, or `containers[].livenessProbe` of the product's own container. */
  readonly path: string;
  /** Only what this minor release of v3 published counts; absent: what any did. */
  readonly minor?: number | undefined;
}

export function isPublishedValue({ workload, path, minor }: PublishedPlace, value: unknown): boolean {
  const ofContainer = path.startsWith(OWN_CONTAINER);
  const name = ofContainer ? path.slice(OWN_CONTAINER.length) : path;
  const table = (ofContainer ? PUBLISHED_CONTAINER_FIELDS : PUBLISHED_POD_FIELDS)[workload];
  const values = table[name] ?? [always(undefined)];
  const plain = (each: unknown) => withoutDefaults(ofContainer ? "containers" : "spec", { [name]: each });
  return values
    .filter(({ first, last }) => minor === undefined || (minor >= first && minor <= last))
    .some((each) => isSame(plain(each.value), plain(value)));
}

/** Before the names of fields of the product's own container. */
export const OWN_CONTAINER = "containers[].";

export function isPublishedMount({ name, mountPath }: Readonly<Record<string, unknown>>): boolean {
  return PUBLISHED_MOUNTS[String(mountPath)] === name;
}

export function isPublishedInstallVariable(variable: Readonly<Record<string, unknown>>): boolean {
  const fieldPath = PUBLISHED_INSTALL_VARIABLES[String(variable["name"])];
  const { name: _, ...rest } = variable;
  return fieldPath !== undefined && isSame(withoutDefaults("env", rest), { valueFrom: { fieldRef: { fieldPath } } });
}

/** Without the values that the server fills in. `parent`: the field that has these, by which they are known. */
function withoutDefaults(parent: string, fields: object): unknown {
  // Without anything that was given, the parent itself is left out.
  return (withoutServerFields({ [parent]: fields }, undefined) as Readonly<Record<string, unknown>>)[parent] ?? {};
}
