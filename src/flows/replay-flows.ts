/**
 * What policies would decide about connections that were recorded: the judge on the packets of the records, with resources as they are,
 * or as they could be. Pure.
 *
 * A pod that is gone is judged as it was recorded: with its labels and the profile of its namespace. What a record does not
 * contain (named ports, the service account) it has from a pod of the same namespace with the same labels, if there is one.
 */
import { type Address, formatAddress, parseAddress } from "../ip/address.ts";
import { inheritedContainerLabels } from "../model/container-labels.ts";
import { endpointLabels } from "../model/endpoint-labels.ts";
import type { NodeAgentSettings } from "../model/node-agent-configuration.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../model/workload-endpoint.ts";
import { workloadEndpointName } from "../model/workload-endpoint-name.ts";
import type { Explanation } from "../policy/judge/explain.ts";
import type { Decider, ExplainedSide } from "../policy/judge/explain-side.ts";
import { IndexedJudge, namedSourcePorts } from "../policy/judge/indexed-judge.ts";
import type { PolicyResources } from "../policy/judge/resources.ts";
import {
  endsOf,
  hasAddressOf,
  isWorkload,
  nameOfWorkload,
  ownLabels,
  packetOf,
  reasonNotToExplain,
  titleOfEnd,
  UNREADABLE_ADDRESSES,
} from "./flow-packet.ts";
import type { FlowEnd, FlowRecord } from "./flow-record.ts";

export interface ReplayedFlow {
  /** `depends`: on the interface of a host that the packet passes. */
  readonly verdict: "allowed" | "denied" | "depends" | "not judged";
  /** Why, in words. */
  readonly reason: string;
  /** Of the side that denies it, otherwise of the last one; absent if no policy, tier or profile decides. */
  readonly decidedBy?: Decider;
  /** In the order in which the packet passes them. */
  readonly sides: readonly ReplayedSide[];
  /** Ends that are judged as they were recorded, in words: they are gone. */
  readonly notes: readonly string[];
}

export type ReplayedSide = Pick<ExplainedSide, "direction" | "verdict" | "reason" | "decidedBy" | "hostEndpoint">;

export interface ReplayOptions {
  readonly settingsOf: (node: string) => NodeAgentSettings;
  /** Nodes without a policy table, where what profiles do not allow passes too. */
  readonly isUnenforcedAt?: (node: string) => boolean;
}

/** For many flows: those that the judge cannot tell apart are judged once. */
export function flowReplay(resources: PolicyResources, options: ReplayOptions): (flow: FlowRecord) => ReplayedFlow {
  const replay = new FlowReplay(resources, options);
  return (flow) => replay.decide(flow);
}

export class FlowReplay {
  private readonly judge: IndexedJudge;
  private readonly workloads: RecordedWorkloads;
  private readonly isNamedSource: (port: number) => boolean;
  private readonly known = new Map<string, ReplayedFlow>();
  private readonly failsafePorts = new Map<string, ReadonlySet<number>>();

  constructor(
    resources: PolicyResources,
    private readonly options: ReplayOptions,
  ) {
    this.judge = new IndexedJudge(resources, options.settingsOf);
    this.workloads = new RecordedWorkloads(resources);
    this.isNamedSource = namedSourcePorts(resources);
  }

  /** How many different flows it has judged, which it remembers. */
  get remembered(): number {
    return this.known.size;
  }

  /** `own`: endpoints of its workloads that the resources do not contain. */
  decide(flow: FlowRecord, own: OwnEndpoints = () => []): ReplayedFlow {
    const plain = this.withoutUnnamedSource(flow);
    const key = keyOf(plain);
    const known = this.known.get(key) ?? this.replayed(plain, own);
    // Unlike the others, it names another flow.
    if (flow.relatedTo === undefined) this.known.set(key, known);
    return known;
  }

  private replayed(flow: FlowRecord, own: OwnEndpoints): ReplayedFlow {
    const packet = packetOf(flow);
    const ends = [flow.source, flow.backend ?? flow.destination];
    const found = ends.filter(isWorkload).map((end) => ({ end, ...this.workloads.of(end, own) }));
    const unknown = found.find(({ workload }) => workload === undefined);
    const obstacle =
      reasonNotToExplain(flow) ??
      (packet === undefined ? UNREADABLE_ADDRESSES : undefined) ??
      (ends.some(({ kind }) => kind === "hidden") ? "one of its ends is hidden from you" : undefined) ??
      (unknown && `${titleOfEnd(unknown.end)} is gone, and its record does not say in which network it was`);
    if (packet === undefined || obstacle !== undefined) return notJudged(obstacle ?? UNREADABLE_ADDRESSES);
    const { source, destination } = endsOf(flow, (end) => found.find((each) => each.end === end)?.workload);
    const others = found.flatMap(({ workload, isKnown }) =>
      workload === undefined || isKnown === true ? [] : [workload],
    );
    const { isUnenforcedAt } = this.options;
    const asked = { ...packet, source, destination, ...(isUnenforcedAt === undefined ? {} : { isUnenforcedAt }) };
    return replayedOf(this.judge.explain(asked, others), [...new Set(found.flatMap(({ gone }) => gone ?? []))]);
  }

  /** Each connection has another source port, which hardly any rule names. */
  private withoutUnnamedSource(flow: FlowRecord): FlowRecord {
    const { port, ...source } = flow.source;
    if (port === undefined || this.isNamedSource(port)) return flow;
    // A doNotTrack policy does not judge what a failsafe port replies.
    const ends = [flow.source, flow.destination, flow.backend].map((end) => end?.node ?? end?.name);
    const isFailsafe = [flow.node, ...ends].some((node) => node !== undefined && this.failsafePortsAt(node).has(port));
    return isFailsafe ? flow : { ...flow, source };
  }

  private failsafePortsAt(node: string): ReadonlySet<number> {
    const known = this.failsafePorts.get(node);
    if (known !== undefined) return known;
    const { failsafeInboundHostPorts, failsafeOutboundHostPorts } = this.options.settingsOf(node);
    const ports = new Set([...failsafeInboundHostPorts, ...failsafeOutboundHostPorts].map((each) => each.port));
    this.failsafePorts.set(node, ports);
    return ports;
  }
}

function notJudged(reason: string): ReplayedFlow {
  return { verdict: "not judged", reason, sides: [], notes: [] };
}

const VERDICTS = { allow: "allowed", deny: "denied", depends: "depends" } as const;

function replayedOf({ verdict, sides }: Explanation, notes: readonly string[]): ReplayedFlow {
  const deciding = sides.find((side) => side.verdict === "deny") ?? sides.at(-1);
  const decidedBy = deciding?.decidedBy;
  return {
    verdict: VERDICTS[verdict],
    reason: deciding?.reason ?? "neither end is a workload or on a node with a host endpoint: no policy applies",
    ...(decidedBy === undefined ? {} : { decidedBy }),
    sides: sides.map(sideOf),
    notes,
  };
}

function sideOf({ direction, verdict, reason, decidedBy, hostEndpoint }: ExplainedSide): ReplayedSide {
  return {
    ...{ direction, verdict, reason },
    ...(decidedBy === undefined ? {} : { decidedBy }),
    ...(hostEndpoint === undefined ? {} : { hostEndpoint }),
  };
}

/** What the judge sees of it. */
export function keyOf({ node, protocol, icmp, source, destination, backend, seenAs, relatedTo }: FlowRecord): string {
  const ends = [source, destination, backend].map(
    (end) => end && [end.kind, end.address, end.port, end.namespace, end.name, end.node, end.labels],
  );
  return JSON.stringify([node, protocol, icmp, ends, seenAs?.address, relatedTo]);
}

type OwnEndpoints = () => readonly WorkloadEndpoint[];

interface RecordedWorkload {
  /** Absent: too little is known of it. */
  readonly workload?: WorkloadEndpoint;
  /** The resources contain it. */
  readonly isKnown?: true;
  /** That it is judged as it was recorded, in words. */
  readonly gone?: string;
}

/** The workloads that records name. */
export class RecordedWorkloads {
  private readonly byAddress: ReadonlyMap<string, readonly WorkloadEndpoint[]>;
  private byLabels: ReadonlyMap<string, readonly WorkloadEndpoint[]> | undefined;
  private readonly known = new Map<string, RecordedWorkload>();

  constructor(private readonly resources: PolicyResources) {
    const index = new Map<string, WorkloadEndpoint[]>();
    for (const endpoint of resources.endpoints) {
      for (const address of recordedAddresses(endpoint)) {
        const text = formatAddress(address);
        index.set(text, [...(index.get(text) ?? []), endpoint]);
      }
    }
    this.byAddress = index;
  }

  of(end: FlowEnd, own: OwnEndpoints): RecordedWorkload {
    const key = JSON.stringify([end.kind, end.address, end.namespace, end.name, end.node, end.labels]);
    const known = this.known.get(key) ?? this.find(end, own);
    this.known.set(key, known);
    return known;
  }

  private find(end: FlowEnd, own: OwnEndpoints): RecordedWorkload {
    const address = parseAddress(end.address);
    const there = (address === undefined ? [] : (this.byAddress.get(formatAddress(address)) ?? [])).filter((endpoint) =>
      hasAddressOf(endpoint, end),
    );
    const present = there.find((endpoint) => isNamed(endpoint, end));
    if (present !== undefined) return { workload: present, isKnown: true };
    const told = own().find((endpoint) => hasAddressOf(endpoint, end) && isNamed(endpoint, end));
    if (told !== undefined) return { workload: told };
    const alike = this.alike(end);
    const { kind, namespace, name = end.address, node = "" } = end;
    const title = titleOfEnd(end);
    if (alike === undefined && (kind !== "pod" || namespace === undefined)) return {};
    const made = workloadEndpointName({ node, orchestrator: "k8s", workload: name, endpoint: "eth0" });
    const endpointName = made.ok ? made.name : name;
    const spec = {
      ...(alike?.spec ?? { orchestrator: "k8s", profiles: [`kns.${namespace}`] }),
      ...(end.node === undefined ? {} : { node: end.node }),
      ipNetworks: [end.address],
    };
    if (alike !== undefined) {
      const workload = { ...alike, metadata: { ...alike.metadata, name: endpointName }, spec };
      return { workload, gone: `${title} is gone: judged as ${titleOfWorkload(alike)}, which has the same labels` };
    }
    const labels = endpointLabels(end.labels ?? {}, { namespace: namespace ?? "", orchestrator: "k8s" });
    return {
      workload: workloadEndpoint.make({ name: endpointName, namespace: namespace ?? "", labels }, spec),
      gone: `${title} is gone: judged with its recorded labels and the profile of its namespace`,
    };
  }

  private alike({ kind, namespace, labels }: FlowEnd): WorkloadEndpoint | undefined {
    if (labels === undefined) return undefined;
    const { endpoints, containerLabels } = this.resources;
    this.byLabels ??= Map.groupBy(endpoints, (endpoint) => {
      const named = nameOfWorkload(endpoint);
      const all = { ...endpoint.metadata.labels, ...inheritedContainerLabels(endpoint, containerLabels) };
      return labelsKey({ ...named, labels: ownLabels(all) ?? {} });
    });
    const found = this.byLabels.get(labelsKey({ kind, namespace, labels })) ?? [];
    // Of containers with the same labels in several networks it is not known in which it was.
    const isOne = new Set(found.map(({ spec }) => JSON.stringify(spec.profiles))).size === 1;
    return kind === "pod" || isOne ? found[0] : undefined;
  }
}

function labelsKey({
  kind,
  namespace,
  labels = {},
}: Pick<FlowEnd, "kind" | "labels"> & { namespace?: string | undefined }) {
  const sorted = Object.entries(labels).sort(([left], [right]) => (left < right ? -1 : 1));
  return JSON.stringify([kind, namespace, sorted]);
}

/** Also those by which it is known outside. */
function recordedAddresses({ spec }: WorkloadEndpoint): readonly Address[] {
  const all = [...(spec.ipNetworks ?? []), ...(spec.ipNATs ?? []).map(({ externalIP }) => externalIP)];
  return all.flatMap((text) => parseAddress(text.replace(/\/.*$/, "")) ?? []);
}

function isNamed(endpoint: WorkloadEndpoint, { kind, namespace, name }: FlowEnd): boolean {
  const own = nameOfWorkload(endpoint);
  return own.kind === kind && own.namespace === namespace && own.name === name;
}

function titleOfWorkload(endpoint: WorkloadEndpoint): string {
  const { namespace, name } = nameOfWorkload(endpoint);
  return namespace === undefined ? `${name}` : `${namespace}/${name}`;
}
