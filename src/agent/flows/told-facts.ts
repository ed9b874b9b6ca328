/** What a collector of flows is told: followed as long as it runs, and kept in a feed until the collector takes it. */
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import type { ReplicaSnapshot, Update } from "../../datastore/replica.ts";
import type { CollectorSettings, ToCollector } from "../../flows/collector-messages.ts";
import {
  isStagedKind,
  STORED_KINDS,
  STORED_STAGED_KINDS,
  type StoredKind,
  UNREADABLE,
} from "../../flows/stored-resources.ts";
import { InterfaceMonitor } from "../../linux/rtnetlink/interface-monitor.ts";
import { millisecondsOf } from "../../model/duration.ts";
import type { GlobalNetworkPolicy } from "../../model/global-network-policy.ts";
import { hasPrefix, workloadPrefixes } from "../../model/interface-prefix.ts";
import type { NetworkPolicy } from "../../model/network-policy.ts";
import { NO_FILE, type NodeAgentSettings, nodeAgentSettings } from "../../model/node-agent-configuration.ts";
import type { Profile } from "../../model/profile.ts";
import { usesServices } from "../../policy/read-resources.ts";
import { aborted, nextTurn } from "../../timers.ts";
import type { FollowedNetwork, NetworkValues } from "../network/followed-network.ts";
import type { FlowRules } from "../policy/flow-rules.ts";
import { AddressBook, NAMED_KINDS, type NamedChange } from "./address-book.ts";
import { CollectorFeed } from "./collector-feed.ts";
import type { FlowsOfNode } from "./flows-of-node.ts";
import { followServices } from "./follow-services.ts";
import { followStaged, type StagedUpdate } from "./follow-staged.ts";
import { followControllers } from "./link/link-access.ts";

/** More names are answered, but their changes are not told. */
const MOST_ASKED = 200_000;
/** Records that are looked at in one turn. */
const RECORDS_AT_ONCE = 1_000;

const KINDS = [...new Set([...NAMED_KINDS, ...STORED_KINDS])];
type Values = Pick<NetworkValues, (typeof KINDS)[number]>;

export interface ToldMeans {
  readonly flows: FlowsOfNode;
  /** There is something to take. */
  readonly changed: () => void;
  readonly report: (message: string) => void;
}

export class ToldFacts {
  private readonly book: AddressBook;
  private readonly feed: CollectorFeed;
  private readonly first = Promise.withResolvers<void>();
  private snapshot: ReplicaSnapshot<Values> | undefined;
  private staged: StagedUpdate["snapshot"] | undefined;
  private settings: CollectorSettings | undefined;
  private rules: FlowRules | undefined;
  private labelsSince: number | undefined;
  private requestRules: readonly number[] = [];
  private areSlicesTold = false;

  constructor(
    private readonly followed: FollowedNetwork,
    private readonly means: ToldMeans,
  ) {
    this.feed = new CollectorFeed({
      nameOf: (key) => this.book.nameOf(key),
      resource: (kind, key) => this.resource(kind, key),
      changed: means.changed,
    });
    this.book = new AddressBook({
      ...{ node: followed.network.node, elapsed: followed.means.clock.elapsed, mostAsked: MOST_ASKED },
      changed: (key) => this.feed.addName(key),
    });
  }

  /** Resolves when what the datastore says is known. */
  get known(): Promise<void> {
    return this.first.promise;
  }

  get unanswered(): number {
    return this.feed.unanswered;
  }

  /** Each ends when the signal is aborted, or rejects. */
  loops(stop: AbortSignal): readonly Promise<void>[] {
    const { followed, means } = this;
    return [
      this.followRecords(stop),
      this.followOwnAddresses(stop),
      this.followRules(stop),
      followControllers({ ...followed, report: means.report, send: (access) => this.feed.setLink(access) }, stop),
      followServices(
        { ...followed, report: means.report },
        (change) => this.book.take({ of: "services", change }),
        stop,
      ),
      followStaged({ ...followed, report: means.report }, (update) => this.takeStaged(update), stop),
    ];
  }

  take(): ToCollector | undefined {
    return this.feed.take();
  }

  answer(key: string): void {
    this.book.ask(key);
    this.feed.addName(key);
  }

  forget(key: string): void {
    this.book.forget(key);
  }

  noteUse(since: number, numbers: readonly number[]): void {
    this.rules?.noteUse(since, numbers);
  }

  /** Once a second. */
  tick(): void {
    this.book.expire();
    this.tellLabels();
    if (this.rules !== undefined) this.feed.setDenied(this.rules.denied());
  }

  private tellLabels(): void {
    const { labelsSince } = this.rules ?? {};
    if (labelsSince !== undefined && labelsSince !== this.labelsSince) this.feed.setLabelsWritten(labelsSince);
    this.labelsSince = labelsSince;
    const numbers = this.rules?.rulesWithRequests() ?? [];
    if (Bun.deepEquals(numbers, this.requestRules)) return;
    this.requestRules = numbers;
    this.feed.setRequestRules(numbers);
  }

  private async followRecords(stop: AbortSignal): Promise<void> {
    for await (const { snapshot, changes } of this.followed.replica.part(KINDS).updates(stop)) {
      this.snapshot = snapshot;
      this.tellSettings(snapshot);
      let seen = 0;
      for (const change of namedChanges(changes)) {
        this.book.take(change);
        seen += 1;
        if (seen % RECORDS_AT_ONCE === 0) await nextTurn();
      }
      for (const kind of STORED_KINDS) this.tellResources(kind, changes[kind]);
      this.first.resolve();
    }
  }

  private tellSettings({ configurations }: ReplicaSnapshot<Values>): void {
    const { node } = this.followed.network;
    const all = nodeAgentSettings(
      Array.from(configurations, ([, value]) => value),
      node,
    );
    const settings = collectorSettings(all, node);
    if (Bun.deepEquals(settings, this.settings)) return;
    this.settings = settings;
    this.feed.setSettings(settings);
  }

  /** EndpointSlices are many and change often: they are told only as long as a rule has needed them. */
  private tellResources(kind: StoredKind, changes: readonly RecordChange<unknown>[]): void {
    if (kind === "serviceEndpoints" && !this.areSlicesTold) return;
    for (const { key } of changes) this.feed.addResource(kind, key);
    if (this.areSlicesTold || this.snapshot === undefined) return;
    const { profiles, networkPolicies, globalNetworkPolicies, serviceEndpoints } = this.snapshot;
    const policies = { profiles, networkPolicies, globalNetworkPolicies };
    if (kind !== "profiles" && kind !== "networkPolicies" && kind !== "globalNetworkPolicies") return;
    const specOf = (key: string): Profile | NetworkPolicy | GlobalNetworkPolicy | undefined => policies[kind].get(key);
    const needsThem = changes.some(({ key }) => {
      const resource = specOf(key);
      return resource !== undefined && usesServices(resource);
    });
    if (!needsThem) return;
    this.areSlicesTold = true;
    for (const key of serviceEndpoints.keys()) this.feed.addResource("serviceEndpoints", key);
  }

  private takeStaged({ snapshot, changes }: StagedUpdate): void {
    this.staged = snapshot;
    for (const kind of STORED_STAGED_KINDS) for (const { key } of changes[kind]) this.feed.addResource(kind, key);
  }

  private resource(kind: StoredKind, key: string): string | undefined {
    const held = isStagedKind(kind) ? this.staged?.[kind].held(key) : this.snapshot?.[kind].held(key);
    if (held === undefined) return undefined;
    return held.kind === "unreadable" ? UNREADABLE : JSON.stringify(held.value);
  }

  private async followOwnAddresses(stop: AbortSignal): Promise<void> {
    const monitor = new InterfaceMonitor(this.followed.means.kernel, (name) => !this.isOfWorkload(name));
    const look = () => this.book.setOwnAddresses(monitor.read().flatMap(({ addresses }) => addresses));
    try {
      look();
      for await (const _ of monitor.changes(stop)) look();
    } finally {
      monitor.close();
    }
  }

  private isOfWorkload(interfaceName: string): boolean {
    const configurations = Array.from(this.snapshot?.configurations ?? [], ([, value]) => value);
    const { interfacePrefix } = nodeAgentSettings(configurations, this.followed.network.node);
    return hasPrefix(interfaceName, workloadPrefixes(interfacePrefix));
  }

  private async followRules(stop: AbortSignal): Promise<void> {
    let unfollow = () => {};
    const follow = (rules: FlowRules | undefined) => {
      unfollow();
      this.rules = rules;
      this.feed.forgetDenied();
      // What a former enforcement has said still holds for the connections of its time.
      if (rules === undefined) return;
      this.feed.setRules(rules.rules());
      this.tellLabels();
      unfollow = rules.follow({
        added: (added) => {
          this.feed.addRules(added);
          this.tellLabels();
        },
        removed: (numbers) => this.feed.removeRules(numbers),
        settingsChanged: () => this.tellLabels(),
      });
    };
    const leave = this.means.flows.followRules(follow);
    await aborted(stop);
    leave();
    unfollow();
  }
}

function collectorSettings(settings: NodeAgentSettings, node: string): CollectorSettings {
  const { flowLogFile } = settings;
  return {
    node,
    vxlanPort: settings.vxlanPort,
    historyMegabytes: settings.flowHistoryMegabytes,
    historyMilliseconds: millisecondsOf(settings.flowHistoryAge),
    mostPerSecond: settings.flowsPerSecond,
    ...(flowLogFile === NO_FILE ? {} : { logFile: flowLogFile }),
  };
}

function* namedChanges(changes: Update<Values>["changes"]): Generator<NamedChange> {
  for (const change of changes.nodes) yield { of: "nodes", change };
  for (const change of changes.hostEndpoints) yield { of: "hostEndpoints", change };
  for (const change of changes.containerLabels) yield { of: "containerLabels", change };
  for (const change of changes.networkSets) yield { of: "networkSets", change };
  for (const change of changes.globalNetworkSets) yield { of: "globalNetworkSets", change };
  for (const change of changes.endpoints) yield { of: "endpoints", change };
}

/** Other work of the agent comes first. */
