/**
 * A datastore as one reader may see it: what they may not list is absent, and named in `hidden`. For one answer, which says what
 * is hidden from it; reads alone, and new records.
 *
 *   Kubernetes   the store has the reader's token, so the API server refuses; `rights` are not asked
 *   etcd         the store has all records; `rights` of the reader decide, by the resources of this product's API
 *
 * Of a kind with namespaces that may not be listed everywhere, the records of the namespaces are read in which it may.
 */
import type { Datastore, Entry, Snapshot, Wanted } from "../../datastore/datastore.ts";
import { compareKeys } from "../../datastore/key-order.ts";
import { PluginError } from "../../errors.ts";
import { PRODUCT_API } from "../../identity.ts";
import { isForbidden } from "../../kube/require-ok.ts";
import {
  ALL_AFFINITIES_PREFIX,
  ALL_BORROWED_PREFIX,
  blocksPrefix,
  HANDLES_PREFIX,
  IPAM_CONFIGURATION_KEY,
  parseKey,
  ROOT_PREFIX,
  resourcesPrefix,
} from "../../model/keys.ts";
import { PUBLIC_KINDS } from "../../model/kinds.ts";
import { SERVICE_ENDPOINTS_PREFIX } from "../../model/service-endpoints.ts";
import { quoted } from "../../quote.ts";
import type { ServerTime } from "../../server-clock.ts";
import type { ReaderRights } from "./reader.ts";

export interface VisibleStore extends Datastore {
  /** What was read and may not be seen, in words. Empty: everything was seen. */
  readonly hidden: readonly string[];
}

/** One that may hide something, or a whole one. */
export type SeenRecords = Datastore & { readonly hidden?: readonly string[] };

export interface StoreAccess {
  readonly store: Datastore;
  /** "store": it has the reader's own token. */
  readonly decides: "store" | "rights";
}

export function visibleStore({ store, decides }: StoreAccess, rights: ReaderRights): VisibleStore {
  return new SeenStore(store, decides, rights);
}

/** Where a record is, for rights. */
interface Place {
  readonly group: string;
  readonly resource: string;
  readonly namespace?: string;
}

class SeenStore implements VisibleStore {
  readonly atomicity: Datastore["atomicity"];
  readonly isOrchestratorApi: boolean | undefined;
  /** By kind: the namespaces in which it is seen all the same. */
  private readonly unseen = new Map<string, ReadonlySet<string>>();

  constructor(
    private readonly inner: Datastore,
    private readonly decides: StoreAccess["decides"],
    private readonly rights: ReaderRights,
  ) {
    this.atomicity = inner.atomicity;
    this.isOrchestratorApi = inner.isOrchestratorApi;
  }

  get hidden(): readonly string[] {
    return [...new Set([...this.unseen].map(([kind, seenIn]) => hiddenText(kind, seenIn)))].toSorted();
  }

  async read(wanted: readonly Wanted[]): Promise<Snapshot> {
    const keys = await this.readKeys(wanted.filter((each) => each.kind === "key"));
    const answers = wanted.map((each) => (each.kind === "key" ? (keys.get(each.key) ?? []) : this.readBelow(each)));
    // Nobody writes by what is read here.
    return { revision: "0", answers: await Promise.all(answers) };
  }

  async commit(changes: Parameters<Datastore["commit"]>[0]): ReturnType<Datastore["commit"]> {
    for (const change of changes) {
      const { group, resource, namespace } = placeOf(change.key);
      const isCreation = change.kind === "create" && namespace !== undefined;
      if (!isCreation)
        throw new PluginError("internal", `Cannot write ${quoted(change.key)}: the console only creates`);
      if (this.decides === "store" || (await this.rights.may({ verb: "create", group, resource, namespace }))) continue;
      const details = `an administrator can allow it with the rule {apiGroups: ["${group}"], resources: ["${resource}"], verbs: ["create"]}`;
      throw new PluginError(
        "api-unavailable",
        `Cannot create ${resource} in namespace ${quoted(namespace)}: you may not`,
        {
          details,
        },
      );
    }
    return this.inner.commit(changes);
  }

  async transact(): Promise<never> {
    throw new PluginError("internal", "Cannot change records: the console only creates");
  }

  clock(): ServerTime {
    return this.inner.clock?.();
  }

  watch(): never {
    throw new PluginError("internal", "Cannot follow records: the console only reads");
  }

  /** The store is another one's. */
  async close(): Promise<void> {}

  private async readKeys(
    wanted: readonly (Wanted & { readonly kind: "key" })[],
  ): Promise<ReadonlyMap<string, readonly Entry[]>> {
    const answers = await Promise.all(
      wanted.map(async (each) => {
        const place = placeOf(each.key);
        return this.seen(place, async () => (await this.inner.read([each])).answers[0] ?? []);
      }),
    );
    return new Map(wanted.map(({ key }, index) => [key, answers[index] ?? []]));
  }

  private async readBelow(wanted: Wanted & { readonly kind: "prefix" }): Promise<readonly Entry[]> {
    const { prefix, after, limit } = wanted;
    const place = placeOf(prefix);
    const read = async (each: Wanted) => (await this.inner.read([each])).answers[0] ?? [];
    const known = this.unseen.get(kindOf(place));
    const all = known === undefined ? await this.listed(place, () => read(wanted)) : undefined;
    if (all !== undefined) return all;
    if (place.namespace !== undefined || !isNamespaced(place)) {
      this.unseen.set(kindOf(place), new Set());
      return [];
    }
    const seenIn = new Set<string>();
    const entries: Entry[] = [];
    const namespaces = await this.rights.namespaces();
    for (let first = 0; first < namespaces.length; first += AT_ONCE) {
      await Promise.all(
        namespaces.slice(first, first + AT_ONCE).map(async (namespace) => {
          const below = { kind: "prefix", prefix: resourcesPrefix(place.resource, namespace) } as const;
          const some = await this.listed({ ...place, namespace }, () => read(below));
          if (some === undefined) return;
          seenIn.add(namespace);
          entries.push(...some);
        }),
      );
    }
    this.unseen.set(kindOf(place), seenIn);
    const following = after === undefined ? entries : entries.filter(({ key }) => compareKeys(key, after) > 0);
    return following.toSorted((left, right) => compareKeys(left.key, right.key)).slice(0, limit);
  }

  private async seen(place: Place, read: () => Promise<readonly Entry[]>): Promise<readonly Entry[]> {
    const entries = await this.listed(place, read);
    if (entries === undefined) this.unseen.set(kindOf(place), new Set());
    return entries ?? [];
  }

  /** `undefined`: the reader may not. */
  private async listed(place: Place, read: () => Promise<readonly Entry[]>): Promise<readonly Entry[] | undefined> {
    if (this.decides === "rights" && !(await this.rights.may({ verb: "list", ...place }))) return undefined;
    try {
      const entries = await read();
      // So that it is noticed if this right is taken away.
      if (this.decides === "store") this.rights.may({ verb: "list", ...servedPlace(place) }).catch(() => {});
      return entries;
    } catch (failure) {
      if (this.decides === "store" && isForbidden(failure)) return undefined;
      throw failure;
    }
  }
}

/** With Kubernetes as the datastore, endpoints are pods, and nodes those of Kubernetes. */
function servedPlace(place: Place): Place {
  const resource = SERVED_BY_KUBERNETES.get(place.resource);
  return resource === undefined ? place : { ...place, group: "", resource };
}

const SERVED_BY_KUBERNETES: ReadonlyMap<string, string> = new Map([
  ["workloadendpoints", "pods"],
  ["nodes", "nodes"],
]);

const AT_ONCE = 16;

function kindOf({ group, resource }: Place): string {
  return group === PRODUCT_API.group ? resource : `${resource}.${group}`;
}

const NAMESPACED: ReadonlySet<string> = new Set([
  ...PUBLIC_KINDS.filter(({ namespaced }) => namespaced).map(({ plural }) => plural),
]);

function isNamespaced({ group, resource }: Place): boolean {
  return group === PRODUCT_API.group && NAMESPACED.has(resource);
}

const OWN_PLACES: readonly (readonly [prefix: string, resource: string])[] = [
  [blocksPrefix(4), "ipamblocks"],
  [blocksPrefix(6), "ipamblocks"],
  [ALL_AFFINITIES_PREFIX, "blockaffinities"],
  [ALL_BORROWED_PREFIX, "blockaffinities"],
  [HANDLES_PREFIX, "ipamhandles"],
  [IPAM_CONFIGURATION_KEY, "ipamconfigurations"],
  [SERVICE_ENDPOINTS_PREFIX, "serviceendpoints"],
];

/** Of a key, or of a prefix that is that of a kind or of a namespace. Throws for others: nothing says who may see them. */
function placeOf(key: string): Place {
  const own = OWN_PLACES.find(([prefix]) => key.startsWith(prefix));
  if (own !== undefined) return { group: PRODUCT_API.group, resource: own[1] };
  // A name completes a prefix to a key.
  const parts = key.endsWith("/") ? parseKey(`${key}x`) : parseKey(key);
  if (parts?.kind !== "resource")
    throw new PluginError(
      "internal",
      `Cannot show ${quoted(key.replace(ROOT_PREFIX, ""))}: it is not a record of a kind`,
    );
  const { api, plural, namespace } = parts;
  return { group: api.group, resource: plural, ...(namespace === undefined ? {} : { namespace }) };
}

export const POOLS_TEXT = "IP pools";
export const BLOCKS_TEXT = "blocks of addresses";

const WORDS: Readonly<Record<string, string>> = {
  ippools: POOLS_TEXT,
  ipreservations: "reservations of addresses",
  ipaddresslists: "lists of addresses",
  ipamblocks: BLOCKS_TEXT,
  blockaffinities: "block affinities",
  ipamhandles: "handles of addresses",
  ipamconfigurations: "the settings of IPAM",
  workloadendpoints: "pods",
  nodes: "nodes",
  profiles: "profiles of namespaces and service accounts",
  networkpolicies: "network policies",
  globalnetworkpolicies: "global network policies",
  networksets: "network sets",
  globalnetworksets: "global network sets",
  hostendpoints: "host endpoints",
  clusterinformations: "the version of the cluster",
  serviceendpoints: "endpoints of Services",
};
const MOST_NAMED = 3;

function hiddenText(kind: string, seenIn: ReadonlySet<string>): string {
  const word = WORDS[kind] ?? kind;
  const names = [...seenIn].toSorted();
  if (names.length === 0) return word;
  const named = names.length <= MOST_NAMED ? names.join(", ") : `${names.length} namespaces`;
  return `${word} outside of ${names.length > MOST_NAMED ? "" : names.length === 1 ? "namespace " : "namespaces "}${named}`;
}
