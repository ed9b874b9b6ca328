/**
 * A cluster as the reader with one token may see it. Every request to the API server carries that token and nothing else; it goes
 * nowhere else. Records of etcd, which only the console itself can read, are filtered by what the API server says of the reader.
 */

import { answersOfCluster } from "../../admin/flows/flow-access.ts";
import { findBlocks } from "../../admin/ipam/blocks.ts";
import { checkTwice, type Finding } from "../../admin/ipam/check/check-once.ts";
import { USUAL_GRACE_MILLISECONDS } from "../../admin/ipam/check/leaks-and-duplicates.ts";
import type { Clock } from "../../admin/main/context.ts";
import type { StatusPart } from "../../admin/status/facts.ts";
import { readDatastoreState } from "../../admin/status/read-datastore.ts";
import { readStatusFacts } from "../../admin/status/read-facts.ts";
import { readUpgrade, type UpgradeFacts } from "../../admin/upgrade/status.ts";
import type { KubeAccess } from "../../config/kube-access.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { openKube } from "../../datastore/kube/open.ts";
import { describeFailure } from "../../errors.ts";
import type { FlowAnswer } from "../../flows/flow-answer.ts";
import { type FlowQuery, parametersOf } from "../../flows/flow-query.ts";
import type { FlowPath } from "../../flows/flow-request.ts";
import { PRODUCT_API } from "../../identity.ts";
import type { KubeClient, KubeLines } from "../../kube/api.ts";
import { clusterObjects } from "../../kube/objects.ts";
import { isForbidden, statusOfRefusal } from "../../kube/require-ok.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import { type Timers, unlessAborted } from "../../timers.ts";
import type { AddressDetail, PoolMapAnswer, Pools } from "../api/addresses.ts";
import type { Health } from "../api/health.ts";
import type { AppliedDraft, PolicyDraft } from "../api/policy-draft.ts";
import { type ConsoleSource, type OpenSource, TokenRefused } from "../source.ts";
import type { NameSight } from "./address-map.ts";
import { type AlertsService, AskedPrometheus } from "./ask-prometheus.ts";
import { clusterHealth, type IpamState } from "./cluster-health.ts";
import { applyPolicyDraft, type DraftMeans, readPolicyDraft } from "./flow-draft.ts";
import { type AddressMeans, readAddress, readPoolMap, readPools } from "./read-addresses.ts";
import { type Attributes, type Reader, ReaderRights, readerOf } from "./reader.ts";
import { BLOCKS_TEXT, POOLS_TEXT, type StoreAccess, type VisibleStore, visibleStore } from "./visible-store.ts";

export interface ClusterSourceMeans extends Pick<Clock, "now" | "wait" | "uuid"> {
  /** Of the console. */
  readonly version: string;
  /** Where the API server is and who has signed its certificate: without any credentials. */
  readonly server: KubeAccess;
  openClient(access: KubeAccess): Promise<KubeClient & KubeLines>;
  /** Of a cluster with etcd as its datastore: what all readers share. Absent: the datastore is Kubernetes. */
  readonly etcd?: Datastore;
  /** The Service of a Prometheus, whose alerts are shown to who may ask it. */
  readonly alerts?: AlertsService;
  readonly timers?: Timers;
  /** With more addresses in use, leaks are not searched for. */
  readonly mostSearched?: number;
}

export function clusterSources(means: ClusterSourceMeans): OpenSource {
  return async (token, signal) => {
    // A token with other characters cannot be sent, and the failure would repeat it.
    if (!TOKEN.test(token)) throw new TokenRefused("Cannot log in: the text is not a token", { details: TOKEN_ADVICE });
    const client = await means.openClient({ ...means.server, token });
    try {
      const reader = await unlessAborted(readerOf(client, signal), signal);
      return await ClusterSource.open(means, client, reader);
    } catch (failure) {
      await client.close();
      throw failure;
    }
  };
}

const TOKEN = /^[\x21-\x7e]{1,16384}$/;
const TOKEN_ADVICE = "create one with: kubectl create token SERVICEACCOUNT --namespace NAMESPACE";

/** Searching all records for leaks costs more than the rest: it is done this often, and at most for so large a share of the time. */
const IPAM_MILLISECONDS = 60_000;
const IPAM_SHARE = 1 / 20;
/** An answer does not wait longer for it: the next one has what was found. */
const IPAM_PATIENCE_MILLISECONDS = 500;

/** Of more addresses, a search takes more memory and time than a page is worth. */
const MOST_SEARCHED = 50_000;

type FoundIpam = IpamState | "may not see" | "too many";

class ClusterSource implements ConsoleSource {
  private readerRights: ReaderRights;
  private ipam: { readonly nextAt: number; readonly last: FoundIpam | undefined } | undefined;
  private lastRights: string | undefined;
  /** How many rights were taken away in this session. */
  private lost = 0;
  /** Addresses in use, when they were counted last. */
  private used: number | undefined;
  private searching: Promise<FoundIpam | undefined> | undefined;
  private readonly prometheus: AskedPrometheus | undefined;

  private constructor(
    private readonly means: ClusterSourceMeans,
    private readonly client: KubeClient & KubeLines,
    private readonly reader: Reader,
    private readonly access: StoreAccess,
  ) {
    this.readerRights = new ReaderRights(client, reader, means.now);
    if (means.alerts !== undefined) this.prometheus = new AskedPrometheus({ ...means, client, service: means.alerts });
  }

  static async open(means: ClusterSourceMeans, client: KubeClient & KubeLines, reader: Reader): Promise<ClusterSource> {
    const { etcd } = means;
    const access: StoreAccess =
      etcd === undefined
        ? { decides: "store", store: await openKube({}, { openClient: async () => client }) }
        : { decides: "rights", store: etcd };
    return new ClusterSource(means, client, reader, access);
  }

  get user(): string {
    return this.reader.user;
  }

  async rights(signal: AbortSignal): Promise<string> {
    const reader = await unlessAborted(readerOf(this.client, signal), signal);
    const rights = new ReaderRights(this.client, reader, this.means.now);
    const [namespaces, ...allowed] = await unlessAborted(
      Promise.all([rights.namespaces(), ...WATCHED_RIGHTS.map((each) => rights.may(each))]),
      signal,
    );
    // Also what is allowed in one namespace only, as far as something was shown by it.
    this.lost += await unlessAborted(this.readerRights.lostIn(rights), signal);
    const text = JSON.stringify([reader, allowed, namespaces, this.lost]);
    // What was found for other rights may be more than these show.
    if (this.lastRights !== text) {
      [this.ipam, this.used] = [undefined, undefined];
      this.prometheus?.forget();
    }
    this.readerRights = rights;
    this.lastRights = text;
    return text;
  }

  async health(signal: AbortSignal): Promise<Health> {
    const { means } = this;
    const store = this.visible();
    const objects = clusterObjects(this.client, signal);
    const unseen = new Set<StatusPart>();
    const [datastore, upgrade, ipam, alerts] = await unlessAborted(
      Promise.all([
        this.datastoreState(store),
        this.upgradeIfSeen(objects),
        this.ipamState(),
        this.prometheus?.alerts(),
      ]),
      signal,
    );
    if (store.hidden.some((text) => text === POOLS_TEXT || text === BLOCKS_TEXT)) unseen.add("pools");
    const status = await readStatusFacts(objects, { toolVersion: means.version, datastore, unseen });
    return clusterHealth({
      ...{ status, now: means.now() },
      ...(typeof ipam === "object" || ipam === "too many" ? { ipam } : {}),
      ...(upgrade === undefined ? {} : { upgrade }),
      ...(alerts === undefined ? {} : { alerts }),
      hidden: [...store.hidden, ...(upgrade === undefined ? ["the progress of upgrades"] : [])],
    });
  }

  flows(query: FlowQuery, follow: boolean, signal: AbortSignal): AsyncIterable<FlowAnswer> {
    const parameters = Object.fromEntries(parametersOf(query));
    return this.answers("flows", { ...parameters, ...(follow ? { follow: "true" } : {}) }, signal);
  }

  explanation(id: string, signal: AbortSignal): AsyncIterable<FlowAnswer> {
    return this.answers("explanation", { id }, signal);
  }

  async pools(signal: AbortSignal): Promise<Pools> {
    return unlessAborted(this.addressMeans().then(readPools), signal);
  }

  async *poolMap(pool: string, signal: AbortSignal): AsyncIterable<PoolMapAnswer> {
    const means = await unlessAborted(this.addressMeans(), signal);
    for await (const answer of readPoolMap(pool, means)) {
      signal.throwIfAborted();
      yield answer;
    }
  }

  async address(address: string, signal: AbortSignal): Promise<AddressDetail> {
    return unlessAborted(
      this.addressMeans().then((means) => readAddress(address, means)),
      signal,
    );
  }

  async draft(flowId: string, signal: AbortSignal): Promise<PolicyDraft> {
    return unlessAborted(readPolicyDraft(this.draftMeans(flowId, signal)), signal);
  }

  /** Once it has begun to write, it is not stopped halfway. */
  async applyDraft(flowId: string, draft: PolicyDraft, signal: AbortSignal): Promise<AppliedDraft> {
    return applyPolicyDraft(this.draftMeans(flowId, signal), draft, this.means);
  }

  /** Closes the datastore of Kubernetes, which shares its connection; never that of all readers. */
  async close(): Promise<void> {
    if (this.access.decides === "store") await this.access.store.close();
    await this.client.close();
  }

  /** Who may not read the flows of all namespaces, is shown those of the one that they ask for, or of their service account. */
  private async *answers(
    path: FlowPath,
    parameters: Readonly<Record<string, string>>,
    stop: AbortSignal,
  ): AsyncIterable<FlowAnswer> {
    const { namespace } = parameters;
    const [own] = namespace === undefined ? await this.readerRights.namespaces() : [namespace];
    yield* answersOfCluster(this.client, { path, parameters, stop }, own);
  }

  private async addressMeans(): Promise<AddressMeans> {
    const ipam = await this.ipamState();
    return {
      ...{ store: this.visible(), sightOf: (namespaces) => this.sightOf(namespaces), now: this.means.now() },
      leaks: typeof ipam === "object" ? ipam.leaked : (ipam ?? "not searched yet"),
    };
  }

  /** Of a cluster with Kubernetes as its datastore, endpoints are pods, and nodes those of Kubernetes. */
  private async sightOf(namespaces: readonly string[]): Promise<NameSight> {
    const rights = this.readerRights;
    const isStore = this.access.decides === "store";
    const group = isStore ? "" : PRODUCT_API.group;
    const pods = { verb: "list", group, resource: isStore ? "pods" : "workloadendpoints" } as const;
    const [nodes, everyPod, ...allowed] = await Promise.all([
      rights.may({ verb: "list", group, resource: "nodes" }),
      rights.may(pods),
      ...namespaces.map((namespace) => rights.may({ ...pods, namespace })),
    ]);
    const seenIn = new Set(namespaces.filter((_, index) => allowed[index] === true));
    return { nodes, podsOf: (namespace) => everyPod || (namespace !== undefined && seenIn.has(namespace)) };
  }

  private draftMeans(id: string, signal: AbortSignal): DraftMeans {
    return { id, answers: this.explanation(id, signal), store: this.visible() };
  }

  private visible(): VisibleStore {
    return visibleStore(this.access, this.readerRights);
  }

  private get kind(): string {
    return this.access.decides === "store" ? "kubernetes" : "etcd";
  }

  /** A datastore that cannot be read is reported, and the rest of health with it. */
  private async datastoreState(store: VisibleStore) {
    try {
      return await readDatastoreState(store, this.kind);
    } catch (failure) {
      if (isRefusedToken(failure)) throw failure;
      return { kind: this.kind, pools: [], agents: [], problem: describeFailure(failure) };
    }
  }

  private async upgradeIfSeen(objects: ReturnType<typeof clusterObjects>): Promise<UpgradeFacts | undefined> {
    try {
      return await readUpgrade(objects, this.means.now());
    } catch (failure) {
      if (isForbidden(failure)) return undefined;
      throw failure;
    }
  }

  /** `undefined`: not known yet. "may not see": the reader may not see all that it takes to tell a leak from what is hidden. */
  private async ipamState(): Promise<FoundIpam | undefined> {
    const { now, wait } = this.means;
    if (this.searching === undefined && now().getTime() >= (this.ipam?.nextAt ?? 0)) {
      this.searching = this.searchIpam().finally(() => {
        this.searching = undefined;
      });
      // A failure is that of who waits for it.
      this.searching.catch(() => {});
    }
    const { searching } = this;
    if (searching === undefined) return this.ipam?.last;
    return Promise.race([searching, wait(IPAM_PATIENCE_MILLISECONDS).then(() => this.ipam?.last)]);
  }

  private async searchIpam(): Promise<FoundIpam | undefined> {
    const [at, rights] = [this.means.now().getTime(), this.lastRights];
    const last = await this.findIpamProblems(at);
    if (rights !== this.lastRights) return undefined;
    const ended = this.means.now().getTime();
    this.ipam = { last, nextAt: ended + Math.max(IPAM_MILLISECONDS, (ended - at) / IPAM_SHARE) };
    return last;
  }

  private async findIpamProblems(at: number): Promise<FoundIpam | undefined> {
    const store = this.visible();
    const most = this.means.mostSearched ?? MOST_SEARCHED;
    try {
      // A search of all records knows how many there are: they are counted only before the first one, and if there were too many.
      if (this.used === undefined || this.used > most) this.used = usedIn((await findBlocks(store)).readable);
      if (this.used > most) return "too many";
      const { records, findings } = await checkTwice(store, this.means, USUAL_GRACE_MILLISECONDS);
      this.used = store.hidden.length > 0 ? undefined : usedIn(records.blocks);
      return store.hidden.length > 0 ? "may not see" : { at, findings, leaked: leakedIn(findings) };
    } catch (failure) {
      // Of a datastore that cannot be read, health says why.
      if (isRefusedToken(failure)) throw failure;
      return undefined;
    }
  }
}

function usedIn(blocks: readonly IPAMBlock[]): number {
  return blocks.reduce((sum, { allocations }) => sum + allocations.filter((index) => index !== undefined).length, 0);
}

function leakedIn(findings: readonly Finding[]): ReadonlyMap<string, string> {
  return new Map(
    findings.flatMap((finding) =>
      finding.kind === "allocation-without-endpoint" && "leaked" in finding ? [[finding.address, finding.message]] : [],
    ),
  );
}

function isRefusedToken(failure: unknown): boolean {
  return failure instanceof TokenRefused || statusOfRefusal(failure) === 401;
}

/** What decides about the views: if one of them changes, what is shown may not be shown any more. */
const WATCHED_RIGHTS: readonly Attributes[] = [
  ...["pods", "nodes"].map((resource) => ({ verb: "list", group: "", resource }) as const),
  ...["ippools", "ipamblocks", "workloadendpoints", "networkpolicies", "globalnetworkpolicies"].map(
    (resource) => ({ verb: "list", group: PRODUCT_API.group, resource }) as const,
  ),
];
