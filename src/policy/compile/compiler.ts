/**
 * Resources -> the table that enforces them on this node, one change at a time.
 *
 *   endpoints, network sets ──────────> MemberSets           what selectors of rules select: elements of kernel sets
 *   labels of containers, by name ────> ContainerTargets     what endpoints inherit from them
 *   policies, tiers, profiles ────────> ApplicablePolicies   which of them apply to a local endpoint
 *   workload and host endpoints here ─> WorkloadEndpoints, HostEndpoints   the verdict maps of their interfaces
 *   sidecars that report ─────────────> SidecarInterfaces    the set of the interfaces that rules with http match
 *                                       Evaluations          the chains that they point to, shared
 *                                       CompilerFollower     what sidecars must know is computed from the same (src/alp/state)
 *
 * No effects: `table` is what the kernel must hold, `takeDelta()` what changed since the last call.
 */

import { identity } from "../../identity.ts";
import { defaultAllowProfile } from "../../model/default-allow-profile.ts";
import { hasPrefix, workloadPrefixes } from "../../model/interface-prefix.ts";
import { nameInKey, parseKey, titleInKey } from "../../model/keys.ts";
import {
  type NodeAgentConfiguration,
  type NodeAgentSettings,
  nodeAgentSettings,
} from "../../model/node-agent-configuration.ts";
import { DEFAULT_ALLOW_PROFILE } from "../../model/profile.ts";
import type { HostInterface } from "../host-interface.ts";
import type { PolicyChanges, PolicyValues } from "../inputs.ts";
import { policyLimits, type WrittenSize } from "../policy-size.ts";
import { workloadBaseChains } from "../render/base-chains.ts";
import type { FlowMarks, LabelledComments } from "../render/flow-marks.ts";
import type { DesiredTable, TableDelta } from "../table/desired-table.ts";
import { type KernelLogging, TableBuilder } from "../table/table-builder.ts";
import { ApplicablePolicies } from "./applicable-policies.ts";
import { ContainerTargets } from "./container-targets.ts";
import { type Entity, hostEntity, networkSetEntity, nodeEntity, workloadEntity } from "./entity.ts";
import { Evaluations } from "./evaluations.ts";
import { HostEndpoints } from "./host-endpoints.ts";
import { MemberSets } from "./member-sets.ts";
import { NamespaceLimits } from "./namespace-limits.ts";
import { EFFECT, type PolicyProblem, PolicyProblems } from "./policy-problems.ts";
import { type PolicyRecord, policyRecord, unreadablePolicy } from "./policy-record.ts";
import { profileRecord } from "./profile-record.ts";
import { ServiceSlices } from "./service-slices.ts";
import { type ReportingSidecars, SidecarInterfaces } from "./sidecar-interfaces.ts";
import { UnnamedInterfaces, type UnplacedEndpoint } from "./unnamed-interfaces.ts";
import { type LocalEndpoint, WorkloadEndpoints } from "./workload-endpoints.ts";

/** Computes something else from what is compiled for the kernel. */
export interface CompilerFollower {
  /** `undefined`: the profile is gone. */
  profileChanged(name: string, labels: Readonly<Record<string, string>> | undefined): void;
  /** The rules of a policy have changed. */
  policyChanged(): void;
}

export interface CompiledParts {
  readonly workloads: WorkloadEndpoints;
  readonly sets: MemberSets;
  /** All that there are now, by name. */
  readonly profiles: () => ApplicablePolicies["allProfiles"];
}

/** "all" also includes those that are not known yet. */
export type AffectedNamespaces = ReadonlySet<string> | "all";

export interface CompilerOptions extends Partial<KernelLogging> {
  readonly node: string;
  /** Those of the datastore; otherwise a policy that matches one denies everything. */
  readonly hasServices?: boolean | undefined;
  /** What the rules can tell about connections, once the configuration wants flows. */
  readonly flows?: FlowMeans;
  /** Why the kernel cannot reject packets: then they are dropped; absent if it can. */
  readonly rejectProblem?: string | undefined;
}

export interface FlowMeans extends Pick<FlowMarks, "labelOf"> {
  /** Absent if the kernel cannot report packets. */
  readonly deniedGroup?: number | undefined;
}

type Change<Kind extends keyof PolicyValues> = PolicyChanges[Kind][number];

export class PolicyCompiler {
  private readonly node: string;
  private readonly builder: TableBuilder;
  private readonly sets: MemberSets;
  private readonly evaluations: Evaluations;
  private readonly policies: ApplicablePolicies;
  private readonly workloads: WorkloadEndpoints;
  private readonly unnamed = new UnnamedInterfaces();
  private readonly hosts: HostEndpoints;
  private readonly sidecars: SidecarInterfaces;
  private readonly followers: CompilerFollower[] = [];
  private prefixes: readonly string[] = [];
  private uplinks: readonly string[] = [];
  private hasIpvs = false;
  private readonly configurations = new Map<string, NodeAgentConfiguration>();
  private readonly problemOf = new PolicyProblems();
  private readonly services = new ServiceSlices();
  private readonly containers = new ContainerTargets();
  private readonly nodes = new Map<string, Entity>();
  private readonly limits: NamespaceLimits;
  /** Workload endpoints of this node that changed since the last delta, whether or not their interface is known. */
  private readonly changedHere = new Set<string>();
  private readonly options: { readonly hasServices: boolean };
  private readonly flows: FlowMeans;
  private readonly rejectProblem: string | undefined;
  /** What is in effect of flows, for comparison. */
  private flowSettings: string | undefined;

  constructor(means: CompilerOptions) {
    const { node, hasServices = false, dropGroup, hasLimit = true, flows = {} } = means;
    this.node = node;
    this.flows = flows;
    this.rejectProblem = means.rejectProblem;
    this.builder = new TableBuilder({ dropGroup, hasLimit });
    this.options = { hasServices };
    this.policies = new ApplicablePolicies((key) => this.touch(key));
    this.sets = new MemberSets(this.builder, {
      prefixesChanged: (reference) => this.evaluations.renderUsersOf(reference),
      grown: () => this.changePolicies(this.limits.close()),
    });
    this.limits = new NamespaceLimits(policyLimits(nodeAgentSettings([], node)), this.sets.addresses);
    this.evaluations = new Evaluations(this.builder, this.sets, (key) => this.policies.policy(key));
    this.workloads = new WorkloadEndpoints(this.builder, this.evaluations, this.policies);
    this.hosts = new HostEndpoints(this.builder, this.evaluations, this.policies);
    this.sidecars = new SidecarInterfaces(this.builder, this.workloads);
    this.policies.changeProfile(DEFAULT_ALLOW_PROFILE, profileRecord(defaultAllowProfile, this.options));
    this.applySettings();
  }

  /** Returns what the follower may read at any time; it is told what has changed. */
  follow(follower: CompilerFollower): CompiledParts {
    this.followers.push(follower);
    return { workloads: this.workloads, sets: this.sets, profiles: () => this.policies.allProfiles };
  }

  get table(): DesiredTable {
    return this.builder;
  }

  /** The workload endpoints of this node. */
  get localEndpoints(): ReadonlyMap<string, LocalEndpoint> {
    return this.workloads.local;
  }

  /** Of pods that another plugin has connected: `setWorkloadLinks` says by which link packets to them leave. */
  get addressesToFind(): ReadonlySet<string> {
    return this.unnamed.addresses;
  }

  /** The workload endpoints of this node whose interface is not known. */
  get unplacedEndpoints(): readonly UnplacedEndpoint[] {
    return this.unnamed.unplaced;
  }

  /** Of this node. */
  get settings(): NodeAgentSettings {
    return nodeAgentSettings(this.configurations.values(), this.node);
  }

  /** The comments of the rules that write into labels of connections. */
  get labelled(): LabelledComments {
    return this.builder.labelled;
  }

  get policyCount(): number {
    return this.policies.policyCount;
  }

  /** `NAMESPACE/NAME`, or `NAME` of a global policy. */
  get policyTitles(): ReadonlySet<string> {
    return this.policies.titles();
  }

  /** Of this node. Each restricts its interfaces, also without any policy. */
  get hostEndpointCount(): number {
    return this.hosts.local.size;
  }

  /** Whether `setHostInterfaces` matters: a host endpoint of this node does not name its interface. */
  get dependsOnAddresses(): boolean {
    return this.hosts.local.values().some(({ spec }) => spec.interfaceName === undefined);
  }

  get problems(): readonly PolicyProblem[] {
    return this.problemOf.all;
  }

  /** What may become a problem although nobody changes a policy. */
  get warnings(): readonly PolicyProblem[] {
    return Array.from(this.limits.warnings, ([title, reason]) => ({ title, reason, effect: EFFECT.near }));
  }

  /** The policies of namespaces that apply to endpoints of this node, and deny because they cannot be carried out. */
  get closedPolicies(): readonly { readonly key: string; readonly reason: string }[] {
    return Array.from(this.problemOf.byKeys)
      .filter(([key, { effect }]) => effect === EFFECT.denies && namespaceIn(key) !== undefined)
      .filter(([key]) => this.evaluations.usesPolicy(key))
      .map(([key, { reason }]) => ({ key, reason }));
  }

  takeDelta(): TableDelta {
    this.workloads.forgetSent();
    this.changedHere.clear();
    return this.builder.takeDelta();
  }

  /** The namespaces whose pods on this node are judged in another way by what changed since the last delta. */
  get affectedNamespaces(): AffectedNamespaces {
    const policies = new Set(this.evaluations.decidingOtherwise(this.builder.delta));
    const ofCluster = new Set(Array.from(policies).filter((key) => key !== undefined && this.isOnlyForPods(key)));
    const evaluating = ofCluster.size === 0 ? [] : this.workloads.evaluating(ofCluster);
    const namespaces = new Set<string>();
    for (const key of [
      ...policies.difference(ofCluster),
      ...evaluating,
      ...this.workloads.sentElsewhere,
      ...this.changedHere,
    ]) {
      const namespace = key === undefined ? undefined : namespaceIn(key);
      if (namespace === undefined) return "all";
      namespaces.add(namespace);
    }
    return namespaces;
  }

  /** Whether a change of policies of this size can close or open others of the namespace, because of its limits. */
  reachesLimit(namespace: string, size: WrittenSize): boolean {
    return this.limits.isReachedBy(namespace, size);
  }

  /** Whether the policy is enforced as it is written, before the change and after it, as far as itself is concerned. */
  isCarriedOut(change: Change<"networkPolicies">): boolean {
    if (change.kind !== "put" || this.problemOf.byKeys.has(change.key)) return false;
    const record = recordOf(change, this.options);
    return record?.problem === undefined && record?.size !== undefined && !this.limits.isTooLarge(record.size);
  }

  /** The interfaces of the host: which of them has an address that a host endpoint expects. */
  setHostInterfaces(interfaces: readonly HostInterface[]): void {
    this.hosts.setInterfaces(interfaces);
    this.finish();
  }

  /** Address -> name of the link. Returns the keys of the endpoints whose interface has changed. */
  setWorkloadLinks(links: ReadonlyMap<string, string>): readonly string[] {
    this.unnamed.setLinks(links);
    const changed = this.placeUnnamed();
    if (changed.length > 0) this.finish();
    return changed;
  }

  /** Whether `setUplinks` matters: interfaces that our plugin has not named may be of workloads. */
  get hasOtherPrefixes(): boolean {
    return this.prefixes.length > 1 || this.prefixes[0] !== identity.interfacePrefix;
  }

  /** The interfaces by which the host reaches others: whatever the settings say, they are not of workloads. */
  setUplinks(names: readonly string[]): "changed" | "same" {
    if (Bun.deepEquals(names, this.uplinks)) return "same";
    this.uplinks = names;
    this.applySettings();
    this.finish();
    return "changed";
  }

  /** Whether this host has IPVS, which sends packets to Services on past the hooks at which they are judged elsewhere. */
  setIpvs(hasIpvs: boolean): "changed" | "same" {
    if (hasIpvs === this.hasIpvs) return "same";
    this.hasIpvs = hasIpvs;
    this.workloads.setIpvs(hasIpvs);
    this.applySettings();
    return "changed";
  }

  /** The endpoints whose sidecar decides about requests: rules with `http` match packets to them only. */
  setSidecars(reporting: ReportingSidecars): "changed" | "same" {
    this.sidecars.setReporting(reporting);
    return this.sidecars.write() ? "changed" : "same";
  }

  update(changes: PolicyChanges): void {
    for (const change of changes.profiles) this.changeProfile(change);
    this.changeContainerLabels(changes.containerLabels);
    for (const change of changes.tiers) this.changeTier(change);
    for (const change of changes.networkSets) this.changeNetworkSet(change);
    for (const change of changes.globalNetworkSets) this.changeNetworkSet(change);
    for (const change of changes.hostEndpoints) this.changeHostEndpoint(change);
    for (const change of changes.endpoints) this.changeEndpoint(change);
    for (const change of changes.serviceEndpoints) this.changeService(change);
    for (const change of changes.nodes ?? []) this.changeNode(change);
    for (const change of changes.networkPolicies) this.noteNetworkPolicy(change);
    for (const change of changes.globalNetworkPolicies) this.changePolicy(change.key, recordOf(change, this.options));
    for (const change of changes.configurations) this.changeConfiguration(change);
    this.changePolicies(this.limits.settle());
    this.hosts.updateTunnels(changes);
    this.placeUnnamed();
    this.finish();
  }

  private changePolicies(changed: ReturnType<NamespaceLimits["settle"]>): void {
    for (const [key, record] of changed) this.changePolicy(key, record);
  }

  /** A policy of the cluster, and no host endpoint can evaluate it, which would judge packets of any pod. */
  private isOnlyForPods(key: string): boolean {
    return this.hosts.local.size === 0 && this.policies.policy(key) !== undefined && namespaceIn(key) === undefined;
  }

  private finish(): void {
    this.workloads.evaluate();
    this.sidecars.write();
    this.hosts.evaluate();
    this.sets.flushRanges();
  }

  private touch(endpoint: string): void {
    if (this.hosts.local.has(endpoint)) this.hosts.touch();
    else this.workloads.touch(endpoint);
  }

  private changeProfile(change: Change<"profiles">): void {
    if (this.problemOf.isKeptUnreadable(change, EFFECT.allowsNothing)) return;
    const name = nameInKey(change.key);
    if (name === DEFAULT_ALLOW_PROFILE) return;
    const record = change.kind === "put" ? profileRecord(change.value, this.options) : undefined;
    this.problemOf.note(change.key, record?.problem);
    this.sets.putParent(name, record?.labels);
    for (const follower of this.followers) follower.profileChanged(name, record?.labels);
    this.policies.changeProfile(name, record);
  }

  private changeContainerLabels(changes: readonly Change<"containerLabels">[]): void {
    const readable = changes.filter((change) => !this.problemOf.isKeptUnreadable(change));
    const given = new Map(
      readable.flatMap((change) => this.containers.put(change.key, change.kind === "put" ? change.value : undefined)),
    );
    this.sets.giveLabels(given);
    this.policies.giveLabels(given);
  }

  private changeTier(change: Change<"tiers">): void {
    const name = nameInKey(change.key);
    if (this.problemOf.isKeptUnreadable(change, EFFECT.closed)) this.policies.markUnreadableTier(name);
    else this.policies.changeTier(name, change.kind === "put" ? change.value.spec : undefined);
  }

  private changeNetworkSet(change: Change<"networkSets"> | Change<"globalNetworkSets">): void {
    if (this.problemOf.isKeptUnreadable(change)) return;
    if (change.kind === "put") this.sets.putEntity(change.key, networkSetEntity(change.value));
    else this.sets.deleteEntity(change.key);
  }

  /** Its status changes all the time. What can no longer be read stays as it was. */
  private changeNode(change: NonNullable<PolicyChanges["nodes"]>[number]): void {
    const { key } = change;
    if (change.kind === "unreadable") return;
    const entity = change.kind === "put" ? nodeEntity(change.value) : undefined;
    if (Bun.deepEquals(this.nodes.get(key), entity)) return;
    if (entity === undefined) {
      this.nodes.delete(key);
      this.sets.deleteEntity(key);
      return;
    }
    this.nodes.set(key, entity);
    this.sets.putEntity(key, entity);
  }

  private changeHostEndpoint(change: Change<"hostEndpoints">): void {
    if (this.problemOf.isKeptUnreadable(change)) return;
    const { key } = change;
    if (change.kind === "put") this.sets.putEntity(key, hostEntity(change.value));
    else this.sets.deleteEntity(key);
    if (change.kind === "put" && change.value.spec.node === this.node) this.hosts.put(key, change.value);
    else this.hosts.delete(key);
  }

  private changeService(change: Change<"serviceEndpoints">): void {
    if (this.problemOf.isKeptUnreadable(change)) return;
    for (const name of this.services.put(change.key, change.kind === "put" ? change.value : undefined)) {
      this.sets.putService(name.namespace, name.service, this.services.membersOf(name));
    }
  }

  /** An unreadable endpoint is unknown: nothing passes its interface. */
  private changeEndpoint(change: Change<"endpoints">): void {
    const { key } = change;
    this.problemOf.noteUnreadable(change, EFFECT.unknown);
    if (change.previous?.spec.node === this.node) this.changedHere.add(key);
    if (change.kind !== "put") {
      this.sets.deleteEntity(key);
      this.workloads.delete(key);
      this.unnamed.delete(key);
      return;
    }
    const { value: endpoint } = change;
    const entity = workloadEntity(endpoint);
    this.sets.putEntity(key, entity);
    const { node, interfaceName } = endpoint.spec;
    if (node === this.node) this.changedHere.add(key);
    if (node === this.node && interfaceName === undefined) {
      this.unnamed.put(key, endpoint, entity);
      return;
    }
    this.unnamed.delete(key);
    if (node === this.node && interfaceName !== undefined) this.workloads.put(key, { endpoint, interfaceName }, entity);
    else this.workloads.delete(key);
  }

  private placeUnnamed(): readonly string[] {
    const changed = this.unnamed.takeChanged();
    for (const { key, endpoint, entity, interfaceName } of changed) {
      if (interfaceName === undefined) this.workloads.delete(key);
      else this.workloads.put(key, { endpoint, interfaceName }, entity);
    }
    return changed.map(({ key }) => key);
  }

  /** What is enforced of it depends on all others of its namespace: `limits.settle()` follows. */
  private noteNetworkPolicy(change: Change<"networkPolicies">): void {
    this.limits.note(namespaceIn(change.key) ?? "", change.key, recordOf(change, this.options));
  }

  /** `undefined`: the policy is gone. */
  private changePolicy(key: string, record: PolicyRecord | undefined): void {
    this.problemOf.note(key, record?.problem);
    this.policies.changePolicy(key, record);
    this.evaluations.renderPolicy(key);
    for (const follower of this.followers) follower.policyChanged();
  }

  private changeConfiguration(change: Change<"configurations">): void {
    if (this.problemOf.isKeptUnreadable(change)) return;
    if (change.kind === "put") this.configurations.set(change.key, change.value);
    else this.configurations.delete(change.key);
    this.applySettings();
  }

  private applySettings(): void {
    const { settings } = this;
    this.applyFlows(settings);
    this.limits.setLimits(policyLimits(settings));
    const prefixes = workloadPrefixes(settings.interfacePrefix);
    this.prefixes = prefixes;
    const exempt = this.uplinks.filter((name) => hasPrefix(name, prefixes));
    this.problemOf.note(UPLINKS, exempt.length === 0 ? undefined : describeExempt(exempt), EFFECT.exempt);
    const canReject = this.rejectProblem === undefined;
    this.builder.setDenyAction(canReject ? settings.denyAction : "Drop");
    this.problemOf.note(DENY_ACTION, settings.denyAction === "Drop" ? undefined : this.rejectProblem, EFFECT.dropped);
    const wanted = workloadBaseChains({
      ...{ ...settings, prefixes, exempt },
      ...{ hasIpvs: this.hasIpvs, canReject, hasFlows: this.builder.hasFlows },
    });
    const names = new Set(wanted.map(({ chain }) => chain.name));
    for (const name of BASE_CHAIN_NAMES) if (!names.has(name)) this.builder.deleteChain(name);
    for (const chain of wanted) this.builder.putChain(chain);
    const { failsafeInboundHostPorts: inbound, failsafeOutboundHostPorts: outbound } = settings;
    this.hosts.setFailsafes({ inbound, outbound });
    this.hosts.setPrefixes(prefixes);
    this.hosts.setVxlanPort(settings.vxlanPort);
    this.hosts.setPassesResets(settings.openConnections === "End");
    this.unnamed.setPrefixes(prefixes);
  }

  /** Asks again for the label of every rule. */
  renewLabels(): void {
    this.builder.renewFlowMarks();
  }

  /** Hosts get chains of their own, or share those of workloads again. */
  private applyFlows({ flows, flowDeniedPerSecond: perSecond }: NodeAgentSettings): void {
    const wanted = flows === "Enabled" ? `${perSecond}` : undefined;
    if (wanted === this.flowSettings) return;
    this.flowSettings = wanted;
    const { labelOf, deniedGroup: group } = this.flows;
    const denied = group === undefined ? undefined : { group, perSecond };
    this.builder.setFlowMarks(wanted === undefined ? undefined : { labelOf, denied });
    this.hosts.touch();
  }
}

/** Not the keys of resources. */
const UPLINKS = "interfacePrefix";
const DENY_ACTION = "denyAction";

function describeExempt(names: readonly string[]): string {
  return `the host reaches others by ${names.join(", ")}, whose packets pass; use a prefix that only workloads have`;
}

const BASE_CHAIN_NAMES: ReadonlySet<string> = new Set(
  [true, false].flatMap((hasIpvs) =>
    workloadBaseChains({
      ...{ defaultEndpointToHostAction: "Drop", prefixes: [], exempt: [], vxlanPort: 0, hasIpvs },
      ...{ canReject: true, hasFlows: true },
    }).map(({ chain }) => chain.name),
  ),
);

function recordOf(
  change: Change<"networkPolicies"> | Change<"globalNetworkPolicies">,
  options: { readonly hasServices: boolean },
): PolicyRecord | undefined {
  switch (change.kind) {
    case "put":
      return policyRecord(change.key, change.value, options);
    case "delete":
      return undefined;
    case "unreadable": {
      const namespace = namespaceIn(change.key);
      return unreadablePolicy(change.key, { title: titleInKey(change.key), namespace, reason: change.failure.message });
    }
  }
}

function namespaceIn(key: string): string | undefined {
  const parts = parseKey(key);
  return parts?.kind === "resource" ? parts.namespace : undefined;
}
