/**
 * What a command that changes policies, profiles, tiers, network sets, endpoints or their labels means for connections, on stderr: whom
 * it closes or opens, policies that select nothing, hosts that nobody knows or that it closes. The resources are read once,
 * before the work begins; what the command has written since is put on top, so that changes of others are not attributed to it.
 */

import { policyRequirement } from "../../config/installed-network.ts";
import { counted, listed } from "../../counted.ts";
import type { Datastore, OrderedChange } from "../../datastore/datastore.ts";
import { describeFailure } from "../../errors.ts";
import type { HostEndpoint } from "../../model/host-endpoint.ts";
import {
  CONTAINER_LABELS,
  ENDPOINT,
  GLOBAL_NETWORK_POLICY,
  GLOBAL_NETWORK_SET,
  HOST_ENDPOINT,
  NETWORK_POLICY,
  NETWORK_SET,
  NODE,
  PROFILE,
  TIER,
} from "../../model/kinds.ts";
import { nodeAgentSettings } from "../../model/node-agent-configuration.ts";
import type { Resource } from "../../model/resource.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import type { Direction } from "../../policy/effective-rule.ts";
import { POLICY_KINDS } from "../../policy/inputs.ts";
import {
  changedBeforeRouting,
  type PolicyEffect,
  type ProfilesCount,
  policyEffects,
} from "../../policy/judge/policy-effects.ts";
import {
  type HostPortInRule,
  hostPortsInRules,
  publishedBy,
  type RecordedPort,
} from "../../policy/judge/published-ports.ts";
import type { AnyEndpoint, AnyPolicy, PolicyResources } from "../../policy/judge/resources.ts";
import { type ReadPolicy, readPolicy } from "../../policy/read-resources.ts";
import type { AdminKind } from "../kinds/kind.ts";
import type { Given } from "../main/command.ts";
import type { DatastoreAccess, Host } from "../main/context.ts";
import { readThisHost } from "../policy/explain/nat-facts.ts";
import { titleOf } from "../policy/explain/peer.ts";
import { type LocalNode, readLocalNode } from "../policy/local-enforcement.ts";
import { paintStderr } from "../terminal/paint.ts";
import { printable } from "../terminal/printable.ts";
import { isDryRun } from "./dry-run.ts";
import {
  idleNotes,
  idlePeerNotes,
  type NodeLinks,
  readNodeLinks,
  unknownInterfaceText,
  unknownNodeNotes,
  unknownProfileNotes,
} from "./name-notes.ts";

/** The kinds whose changes close or open connections, and that are compared. */
const KINDS = {
  endpoints: ENDPOINT,
  containerLabels: CONTAINER_LABELS,
  hostEndpoints: HOST_ENDPOINT,
  profiles: PROFILE,
  networkPolicies: NETWORK_POLICY,
  globalNetworkPolicies: GLOBAL_NETWORK_POLICY,
  networkSets: NETWORK_SET,
  globalNetworkSets: GLOBAL_NETWORK_SET,
  tiers: TIER,
} as const;
const NAMES = Object.keys(KINDS) as readonly (keyof typeof KINDS)[];

/** Does the work with the store, then says what it has changed. The notes never make a command fail. `kinds`: what it is about. */
export async function withPolicyNotes<T>(
  store: Datastore,
  {
    context,
    given,
    kinds,
  }: { readonly context: DatastoreAccess & Host; readonly given: Given; readonly kinds: Iterable<AdminKind> },
  work: (store: Datastore) => Promise<T>,
): Promise<T> {
  const recording = new Recording(store);
  // Before the work: between its own reading of a record and the writing others could change the record.
  if (Iterator.from(kinds).some(({ kind }) => NAMES.some((name) => KINDS[name].kind === kind)))
    await recording.prepare();
  try {
    return await work(recording.store());
  } finally {
    const run = isDryRun(given) ? " (dry run)" : "";
    for (const note of await recording.notes(context, given))
      context.stderr(`${paintStderr(context).yellow("note:")} ${printable(note)}${run}\n`);
  }
}

/** What is written, and the resources as they were right before the first write that policy depends on. */
class Recording {
  private readonly written = new Map<string, string | undefined>();
  private before: ReadPolicy | Unknown | undefined;

  constructor(private readonly target: Datastore) {}

  async notes(context: DatastoreAccess & Host, given: Given): Promise<readonly string[]> {
    if (this.before === undefined || this.written.size === 0) return [];
    try {
      if ("reason" in this.before) return [unknownNote(this.before)];
      return policyNotes(this.before, this.written, await readHost(context, given));
    } catch (failure) {
      // The work is done: its result counts.
      return [unknownNote({ reason: describeFailure(failure) })];
    }
  }

  store(): Datastore {
    const { target } = this;
    return {
      atomicity: target.atomicity,
      isOrchestratorApi: target.isOrchestratorApi,
      read: (wanted, at) => target.read(wanted, at),
      watch: (prefix, from, signal) => target.watch(prefix, from, signal),
      close: () => target.close(),
      commit: async (changes) => {
        if (changes.some(({ key }) => NAMES.some((name) => key.startsWith(POLICY_KINDS[name].prefix))))
          await this.prepare();
        const outcome = await target.commit(changes);
        if (outcome.ok) this.record(changes);
        return outcome;
      },
      // Policies and endpoints are not written in this way.
      transact: (wanted, decide) => target.transact(wanted, decide),
    };
  }

  /** Reads everything that policy depends on, once. */
  async prepare(): Promise<void> {
    this.before ??= await readPolicy(this.target).catch((failure: unknown) => ({ reason: describeFailure(failure) }));
  }

  private record(changes: readonly OrderedChange[]): void {
    for (const change of changes) {
      if (change.kind === "expect") continue;
      this.written.set(change.key, change.kind === "delete" ? undefined : change.value);
    }
  }
}

/** Why it is not known what a change means. */
interface Unknown {
  readonly reason: string;
}

function unknownNote({ reason }: Unknown): string {
  return `whom this closes or opens is not known: ${reason}`;
}

/** `undefined`: deleted. */
type WrittenRecords = ReadonlyMap<string, string | undefined>;

/** What matters of the host that the tool runs on. */
interface LocalHost {
  readonly profiles: ProfilesCount;
  /** `undefined`: not known. */
  readonly publishedPorts: readonly RecordedPort[] | undefined;
  readonly local: LocalNode | undefined;
  readonly links: NodeLinks | undefined;
}

async function readHost(context: DatastoreAccess & Host, given: Given): Promise<LocalHost> {
  const { isPolicyRequired } = await policyRequirement(context);
  const found = await readThisHost(context).catch(() => undefined);
  const local = await readLocalNode(context, given);
  return {
    profiles: isPolicyRequired ? "always" : "with a policy",
    publishedPorts: found === undefined || found.unreadPorts !== undefined ? undefined : found.hostPorts,
    local,
    links: await readNodeLinks(context, local?.name),
  };
}

function policyNotes(before: ReadPolicy, written: WrittenRecords, host: LocalHost): readonly string[] {
  const after = withWritten(before.resources, written);
  const isNew = <R extends Resource>(each: R) => written.get(keyOf(each)) !== undefined;
  const policies: readonly AnyPolicy[] = [...after.networkPolicies, ...after.globalNetworkPolicies].filter(isNew);
  const nodes = nodeNames(before, written);
  const { local, links } = host;
  const effects = effectsBetween(before.resources, after, {
    ...host,
    isReal: (endpoint) =>
      nodes.includes(endpoint.spec.node ?? "") && unknownInterfaceText(endpoint, links) === undefined,
  });
  const early = changedBeforeRouting(before.resources, after);
  const changed: readonly AnyEndpoint[] = [...effects.map(({ endpoint }) => endpoint), ...early];
  const isChangedHere = changed.some(({ spec }) => spec.node === local?.name);
  return [
    ...idleNotes(policies, after),
    ...idlePeerNotes(policies, after),
    ...after.hostEndpoints.filter(isNew).flatMap((endpoint) => unknownNodeNotes(endpoint, nodes)),
    ...after.hostEndpoints.filter(isNew).flatMap((endpoint) => unknownInterfaceText(endpoint, links) ?? []),
    ...[...after.endpoints, ...after.hostEndpoints]
      .filter(isNew)
      .flatMap((endpoint) => unknownProfileNotes(endpoint, after)),
    ...hostPortNotes(hostPortsInRules(policies, after, host.publishedPorts ?? [])),
    ...workloadNotes(effects),
    ...hostNotes(effects, before),
    ...early.map((endpoint) => earlyNote(endpoint, after, host)),
    ...(local?.unenforced !== undefined && isChangedHere ? [local.unenforced] : []),
  ];
}

/** Nothing is closed or opened where there is no such node or interface. */
function effectsBetween(
  before: PolicyResources,
  after: PolicyResources,
  { profiles, isReal }: Pick<LocalHost, "profiles"> & { readonly isReal: (endpoint: HostEndpoint) => boolean },
): readonly PolicyEffect[] {
  const all = policyEffects(before, after, profiles);
  if ([...before.hostEndpoints, ...after.hostEndpoints].every(isReal)) return all;
  const real = (resources: PolicyResources) => ({
    ...resources,
    hostEndpoints: resources.hostEndpoints.filter(isReal),
  });
  return [
    ...all.filter(({ endpoint }) => endpoint.kind === "WorkloadEndpoint"),
    ...policyEffects(real(before), real(after), profiles).filter(({ endpoint }) => endpoint.kind === "HostEndpoint"),
  ];
}

function withWritten(before: PolicyResources, written: WrittenRecords): PolicyResources {
  if (written.size === 0) return before;
  const replaced = NAMES.map((name) => {
    const { prefix, decode } = POLICY_KINDS[name];
    const own = [...written].filter(([key]) => key.startsWith(prefix));
    if (own.length === 0) return [name, before[name]] as const;
    const kept = (before[name] as readonly Resource[]).filter((each) => !written.has(keyOf(each)));
    const made = own.flatMap(([key, value]) => (value === undefined ? [] : [decode({ key, value, revision: "" })]));
    return [name, [...kept, ...made]] as const;
  });
  return { ...before, ...Object.fromEntries(replaced) };
}

function keyOf({ kind, metadata }: Resource): string {
  const own = NAMES.find((name) => KINDS[name].kind === kind);
  return own === undefined ? "" : KINDS[own].key(metadata);
}

/** With those of the same command: a file may contain a Node and its HostEndpoint. */
function nodeNames({ nodes }: ReadPolicy, written: WrittenRecords): readonly string[] {
  const before = nodes.map(({ metadata }) => metadata.name).filter((name) => !written.has(NODE.key({ name })));
  const made = [...written].flatMap(([key, value]) => {
    return value === undefined || !key.startsWith(NODE.prefix()) ? [] : NODE.codec.read(value, key).metadata.name;
  });
  return [...before, ...made];
}

/** Of more containers than that, not each is said. */
const PUBLISHING = 3;

function hostPortNotes(found: readonly HostPortInRule[]): readonly string[] {
  const notes = found.map(
    ({ endpoint, hostPort, port }) => `${titleOf(endpoint)} publishes ${hostPort} as ${port}: rules see port ${port}`,
  );
  const all = [...new Set(notes)];
  const more = all.length - PUBLISHING;
  const others = more > 0 ? [`${more} more published ports are in rules instead of the port of the container`] : [];
  return [...all.slice(0, PUBLISHING), ...others];
}

function workloadNotes(effects: readonly PolicyEffect[]): readonly string[] {
  const workloads = effects.flatMap(({ endpoint, ...rest }) =>
    endpoint.kind === "WorkloadEndpoint" ? [{ ...rest, endpoint }] : [],
  );
  return (["closes", "opens", "changes"] as const).flatMap((kind) => {
    const ways = Map.groupBy(
      Map.groupBy(
        workloads.filter((effect) => effect.kind === kind),
        ({ endpoint }) => endpoint,
      ),
      ([, own]) => own.map(({ direction }) => direction).join(" and "),
    );
    return Array.from(ways, ([directions, found]) => {
      const endpoints = found.map(([endpoint]) => endpoint);
      return `${kind} ${directions} of ${countedWorkloads(endpoints)}: ${listed(endpoints.map(titleOf).toSorted())}`;
    });
  });
}

function countedWorkloads(endpoints: readonly WorkloadEndpoint[]): string {
  const pods = endpoints.filter(({ spec }) => spec.pod !== undefined).length;
  return counted(endpoints.length, pods === 0 ? "container" : pods === endpoints.length ? "pod" : "workload");
}

function hostNotes(effects: readonly PolicyEffect[], { configurations }: ReadPolicy): readonly string[] {
  const hosts = Map.groupBy(
    effects.filter(({ endpoint }) => endpoint.kind === "HostEndpoint"),
    ({ endpoint, kind, isRestOpen }) => `${kind} ${isRestOpen} ${endpoint.metadata.name}`,
  );
  return Array.from(hosts.values()).flatMap((own) => {
    const [first] = own;
    if (first === undefined) return [];
    const { endpoint, kind, isRestOpen } = first;
    const { node = "" } = endpoint.spec;
    const directions = own.map(({ direction }) => direction);
    const where = `${directions.join(" and ")} of host ${node} (hostendpoint/${endpoint.metadata.name})`;
    if (kind !== "closes") return [`${kind} ${where}`];
    const settings = nodeAgentSettings(configurations, node);
    const ports = (direction: Direction) => {
      const { failsafeInboundHostPorts: incoming, failsafeOutboundHostPorts: outgoing } = settings;
      const open = direction === "ingress" ? incoming : outgoing;
      return `${direction}: ${open.length === 0 ? "none" : listed(open.map(({ protocol, port }) => `${protocol} ${port}`))}`;
    };
    const safe = directions.map(ports).join("; ");
    return [
      isRestOpen
        ? `restricts ${where}: rules deny a part, everything else stays open, and so do failsafe ports (${safe})`
        : `closes ${where}: nothing is allowed but failsafe ports (${safe}) and what policies allow`,
    ];
  });
}

/** Which packets it means is not compared. */
function earlyNote(
  { metadata, spec }: HostEndpoint,
  { endpoints }: PolicyResources,
  { publishedPorts }: LocalHost,
): string {
  const found = endpoints
    .filter((each) => each.spec.node === spec.node)
    .filter((each) => publishedBy(each, publishedPorts ?? []).length > 0);
  const what = `changes what passes host ${spec.node ?? ""} before routing (hostendpoint/${metadata.name})`;
  if (found.length === 0)
    return publishedPorts === undefined ? `${what}; which containers there publish ports is not known` : what;
  return `${what}: ${countedWorkloads(found)} there ${found.length === 1 ? "publishes" : "publish"} ports`;
}
