/**
 * What told the mesh's proxies to ask the sidecar of earlier releases: a filter, and the service that stands for the sidecar. While pods
 * of both releases run, it stays, and new sidecars answer at its socket too; when no former sidecar is left, our filter replaces it.
 */
import * as v from "valibot";
import { FORMER_SIDECAR } from "../../identity.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { decodeShape } from "../../model/shape.ts";
import { envoyFilterObject, type FilterForm } from "../mesh/envoy-filter.ts";

const API = "/apis/networking.istio.io/v1alpha3";
const KINDS = [
  { kind: "EnvoyFilter", plural: "envoyfilters" },
  { kind: "ServiceEntry", plural: "serviceentries" },
  { kind: "DestinationRule", plural: "destinationrules" },
] as const;

const shape = v.looseObject({
  metadata: v.looseObject({ name: v.string(), namespace: v.string(), uid: v.optional(v.string()) }),
  spec: v.optional(v.looseObject({}), {}),
});

export interface FormerFilter {
  /** `EnvoyFilter istio-system/ext-authz` */
  readonly title: string;
  readonly path: string;
  readonly object: Fields;
}

export async function readFormerFilters(objects: ClusterObjects): Promise<readonly FormerFilter[]> {
  const found: FormerFilter[] = [];
  for (const { kind, plural } of KINDS) {
    for (const item of await objects.list(`${API}/${plural}`)) {
      const decoded = decodeShape(shape, item);
      if (!decoded.ok || !JSON.stringify(decoded.value.spec).includes(FORMER_SIDECAR)) continue;
      const { name, namespace } = decoded.value.metadata;
      const path = `${API}/namespaces/${namespace}/${plural}/${name}`;
      const object = { apiVersion: "networking.istio.io/v1alpha3", kind, ...item };
      found.push({ title: `${kind} ${namespace}/${name}`, path, object });
    }
  }
  return found;
}

const USUAL_SOCKET = `/var/run/${FORMER_SIDECAR}/${FORMER_SIDECAR}.sock`;
const SOCKET = new RegExp(`/[\\w./-]*${FORMER_SIDECAR}[\\w.-]*\\.sock`);

/** The socket that the filters ask; `undefined` without filters. */
export function formerSocketOf(filters: readonly FormerFilter[]): string | undefined {
  if (filters.length === 0) return undefined;
  const [socket] = filters.flatMap(({ object }) => SOCKET.exec(JSON.stringify(object))?.[0] ?? []);
  return socket === undefined ? USUAL_SOCKET : `/${socket.replace(/^\/+/, "")}`;
}

export interface PlacedObject {
  readonly path: string;
  readonly object: Fields;
}

/** Ours, with the scope of each former filter. */
export function replacementsOf(filters: readonly FormerFilter[], form: FilterForm): readonly PlacedObject[] {
  const ours = envoyFilterObject(form);
  const scopes = filters.flatMap(({ object }) => {
    const decoded = decodeShape(shape, object);
    return decoded.ok && object["kind"] === "EnvoyFilter" ? [decoded.value] : [];
  });
  return scopes.map(({ metadata, spec }) => {
    const { namespace } = metadata;
    const selector = "workloadSelector" in spec ? { workloadSelector: spec["workloadSelector"] } : {};
    return {
      path: `${API}/namespaces/${namespace}/envoyfilters/${ours.metadata.name}`,
      object: { ...ours, metadata: { ...ours.metadata, namespace }, spec: { ...selector, ...ours.spec } },
    };
  });
}

/** Created unless there is one; the former ones are deleted only then. */
export async function replaceFilters(
  objects: ClusterObjects,
  filters: readonly FormerFilter[],
  form: FilterForm,
): Promise<void> {
  for (const { path, object } of replacementsOf(filters, form)) await createMissing(objects, path, object);
  for (const { path, object } of filters) {
    const decoded = decodeShape(shape, object);
    const uid = decoded.ok ? decoded.value.metadata.uid : undefined;
    await objects.remove(path, uid === undefined ? {} : { preconditions: { uid } });
  }
}

export async function createMissing(objects: ClusterObjects, path: string, object: Fields): Promise<void> {
  if ((await objects.read(path)) !== undefined) return;
  await objects.create(path.slice(0, path.lastIndexOf("/")), object);
}

/** As it was, without what the server gives to each object. */
export function asNewObject(object: Fields): Fields {
  const decoded = decodeShape(shape, object);
  if (!decoded.ok) return object;
  const { name, namespace, labels, annotations } = decoded.value.metadata;
  return { ...object, metadata: { name, namespace, labels, annotations } };
}
