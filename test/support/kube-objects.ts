/** Objects of a test cluster, created, changed and deleted over its API: many of them, without a kubectl for each. */
import type { KubeRequest } from "../../src/kube/api.ts";
import { openKubeClient } from "../../src/kube/client.ts";
import { requireOk } from "../../src/kube/require-ok.ts";
import type { ApiServer } from "./kube-apiserver.ts";

export interface KubeObjects {
  /** Creates or changes it: what it does not mention stays. */
  apply(kind: ObjectKind, object: KubeObject): Promise<void>;
  /** At once, and also if there is none. */
  remove(kind: ObjectKind, name: ObjectName): Promise<void>;
  close(): Promise<void>;
}

export interface ObjectName {
  readonly name: string;
  readonly namespace?: string;
}

export interface KubeObject {
  readonly metadata: ObjectName & {
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}

const CORE = { apiVersion: "v1", path: "/api/v1" };
const KINDS = {
  Namespace: { ...CORE, plural: "namespaces" },
  Node: { ...CORE, plural: "nodes" },
  Pod: { ...CORE, plural: "pods" },
  ServiceAccount: { ...CORE, plural: "serviceaccounts" },
  NetworkPolicy: { ...groupOf("networking.k8s.io"), plural: "networkpolicies" },
  Lease: { ...groupOf("coordination.k8s.io"), plural: "leases" },
} as const;
export type ObjectKind = keyof typeof KINDS;

export async function openKubeObjects({ adminKubeconfig }: ApiServer): Promise<KubeObjects> {
  const client = await openKubeClient(
    { kubeconfigs: [adminKubeconfig] },
    { environment: process.env, warn: () => {}, now: () => new Date(), elapsed: () => performance.now() },
  );
  return {
    async apply(kind, object) {
      const request: KubeRequest = {
        method: "PATCH",
        path: pathOf(kind, object.metadata),
        query: { fieldManager: "test", force: "true" },
        contentType: "application/apply-patch+yaml",
        body: JSON.stringify({ apiVersion: KINDS[kind].apiVersion, kind, ...object }),
        attempt: "retry",
      };
      requireOk(await client.request(request), request);
    },
    async remove(kind, name) {
      const request: KubeRequest = {
        method: "DELETE",
        path: pathOf(kind, name),
        query: kind === "Pod" ? { gracePeriodSeconds: "0" } : {},
        attempt: "retry",
      };
      const response = await client.request(request);
      if (response.status !== 404) requireOk(response, request);
    },
    close: () => client.close(),
  };
}

function groupOf(group: string) {
  return { apiVersion: `${group}/v1`, path: `/apis/${group}/v1` };
}

function pathOf(kind: ObjectKind, { name, namespace }: ObjectName): string {
  const { path, plural } = KINDS[kind];
  return `${path}${namespace === undefined ? "" : `/namespaces/${namespace}`}/${plural}/${name}`;
}
