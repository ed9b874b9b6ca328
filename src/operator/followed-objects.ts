/**
 * The objects of the orchestrator's API that the operator follows: the Installation, what it applied before, what runs of
 * it, and what the cluster says about itself. One row per collection; each is one list and one watch.
 */
import type { KindMapping } from "../datastore/kube/kind-mapping.ts";
import { openKubeStore } from "../datastore/kube/store.ts";
import type { Clock } from "../datastore/replica/clock.ts";
import type { KindTable } from "../datastore/replica/kinds.ts";
import { type Replica, type ReplicaSnapshot, startReplica } from "../datastore/replica.ts";
import { PluginError } from "../errors.ts";
import { apiVersionOf, identity, OPERATOR_API } from "../identity.ts";
import type { KubeClient } from "../kube/api.ts";
import { parseJson } from "../parse-json.ts";
import { quoted } from "../quote.ts";
import { ADMISSION_API } from "../release/admission/policy-objects.ts";
import type { LiveObject } from "../release/live-object.ts";
import { MANAGED_BY_TEXT } from "../release/managed-by-label.ts";
import { groupPath, RENDERED_KINDS, type RenderedPlural } from "../release/object-kinds.ts";
import { servesPolicies } from "../release/older-servers.ts";

export type FollowedRow =
  | RenderedPlural
  | "installations"
  | "statuses"
  | "nodes"
  | "pods"
  /** ConfigMaps in the namespace of the operator: the address of the API server. */
  | "settings"
  /** In the namespace of the operator: to pull images, certificates of etcd. */
  | "secrets"
  /** Every DaemonSet with the name of the node agent, whoever applied it. */
  | "agents"
  /** What kubeadm wrote down about the cluster. */
  | "platform";

export type FollowedValues = Readonly<Record<FollowedRow, LiveObject>>;
export type FollowedSnapshot = ReplicaSnapshot<FollowedValues>;

export interface Namespaces {
  /** Of the operator itself. */
  readonly operator: string;
  /** Of the components. */
  readonly components: string;
}

const RENDERED_PLURALS = Object.keys(RENDERED_KINDS) as readonly RenderedPlural[];

interface Row {
  readonly apiVersion: string;
  readonly kind: string;
  /** Of the collection. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
}

/** Everything with the operator's label, in no particular order. */
export function labelledObjects(snapshot: FollowedSnapshot): readonly LiveObject[] {
  return RENDERED_PLURALS.flatMap((row) => objectsOf(snapshot, row));
}

export function objectsOf(snapshot: FollowedSnapshot, row: FollowedRow): readonly LiveObject[] {
  return Array.from(rowOf(snapshot, row), ([, object]) => object);
}

export function objectNamed(
  snapshot: FollowedSnapshot,
  row: FollowedRow,
  name: { readonly name: string; readonly namespace?: string },
): LiveObject | undefined {
  return rowOf(snapshot, row).get(followedKey(row, name));
}

type Followed = Pick<FollowedSnapshot[FollowedRow], "get" | typeof Symbol.iterator>;

const NOTHING: Followed = new Map();

/** A kind that the API server does not serve is not followed. */
function rowOf(snapshot: Partial<FollowedSnapshot>, row: FollowedRow): Followed {
  return snapshot[row] ?? NOTHING;
}

export interface FollowOptions {
  readonly client: Pick<KubeClient, "request" | "watch">;
  readonly namespaces: Namespaces;
  /** Of kinds that an API server of that release does not serve there are no objects. */
  readonly serverVersion: string;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly random: () => number;
  readonly warn: (message: string) => void;
}

export function followObjects({
  client,
  namespaces,
  serverVersion,
  signal,
  clock,
  random,
  warn,
}: FollowOptions): Replica<FollowedValues> {
  const all = Object.entries(rowsIn(namespaces)) as readonly (readonly [FollowedRow, Row])[];
  const rows = all.filter(([, { apiVersion }]) => apiVersion !== ADMISSION_API || servesPolicies(serverVersion));
  const mappings = rows.map(([name, row]) => mappingOf(name, row));
  const store = openKubeStore({ api: client, mappings, close: async () => {} });
  const sources = rows.map(([name]) => [name, { prefix: prefixOf(name), decode }] as const);
  const table: KindTable<FollowedValues> = tableOf(sources);
  const report = ({ message }: Error) => warn(message);
  return startReplica(store, table, { signal, clock, random, watches: "per kind", report });
}

function rowsIn({ operator, components }: Namespaces): Readonly<Record<FollowedRow, Row>> {
  const own = apiVersionOf(OPERATOR_API);
  const configMaps = { apiVersion: "v1", kind: "ConfigMap" };
  return {
    ...renderedRows(),
    installations: { apiVersion: own, kind: "Installation", path: `/apis/${own}/installations` },
    statuses: {
      apiVersion: own,
      kind: `${identity.title}Status`,
      path: `/apis/${own}/${identity.product}statuses`,
    },
    nodes: { apiVersion: "v1", kind: "Node", path: "/api/v1/nodes" },
    pods: { apiVersion: "v1", kind: "Pod", path: `/api/v1/namespaces/${components}/pods` },
    settings: { ...configMaps, path: `/api/v1/namespaces/${operator}/configmaps` },
    secrets: { apiVersion: "v1", kind: "Secret", path: `/api/v1/namespaces/${operator}/secrets` },
    agents: {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      path: "/apis/apps/v1/daemonsets",
      query: { fieldSelector: `metadata.name=${identity.nodeAgent}` },
    },
    platform: {
      ...configMaps,
      path: "/api/v1/namespaces/kube-system/configmaps",
      query: { fieldSelector: "metadata.name=kubeadm-config" },
    },
  };
}

function renderedRows(): Readonly<Record<RenderedPlural, Row>> {
  const query = { labelSelector: MANAGED_BY_TEXT };
  const rows = RENDERED_PLURALS.map((plural) => {
    const { apiVersion, kind } = RENDERED_KINDS[plural];
    return [plural, { apiVersion, kind, path: `${groupPath(apiVersion)}/${plural}`, query }] as const;
  });
  return tableOf(rows);
}

function tableOf<Name extends string, Value>(rows: readonly (readonly [Name, Value])[]) {
  return Object.fromEntries(rows) as Readonly<Record<Name, Value>>;
}

function mappingOf(name: FollowedRow, { apiVersion, kind, path, query }: Row): KindMapping {
  return {
    prefix: prefixOf(name),
    path: () => undefined,
    collections: () => [query === undefined ? { path } : { path, query }],
    // The items of a list do not name their type.
    record: (object) => ({
      key: followedKey(name, object.metadata),
      value: JSON.stringify({ ...object, apiVersion, kind }),
    }),
    create: refuse,
    update: refuse,
    remove: refuse,
  };
}

function decode({ value }: { readonly value: string }): LiveObject {
  return parseJson(value) as LiveObject;
}

function prefixOf(row: FollowedRow): string {
  return `/followed/${row}/`;
}

/** Of an object in the snapshot of its row. */
export function followedKey(
  row: FollowedRow,
  { name, namespace }: { readonly name: string; readonly namespace?: string },
): string {
  return `${prefixOf(row)}${namespace === undefined ? "" : `${namespace}/`}${name}`;
}

function refuse(key: string): never {
  throw new PluginError("internal", `Cannot write ${quoted(key)}: objects that are followed are applied instead`);
}
