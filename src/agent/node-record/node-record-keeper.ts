/**
 * Keeps the record of this node right: its addresses, those of its tunnels, the ranges of its pods; and the MTU of new
 * pods, which depends on the link that has the addresses.
 *
 *   host, settings ─> addresses ─┐
 *   pools ─> IPAM ─> tunnels ────┼─> the spec that it should have ─> written if it differs from the one that it has
 *   orchestrator ─> pod CIDRs ───┘
 *   BIRD, keeper of routes ──────> an annotation for people, when it is due (routing-annotation.ts)
 *
 * Nothing is read from the datastore or written to it while nothing changes. A node without a record is left to the
 * registration (src/agent/upkeep/upkeep-part.ts), and one of another machine is not touched.
 */
import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import type { Address, Family } from "../../ip/address.ts";
import type { Allocator } from "../../ipam/allocator.ts";
import { requireOwnNodeEntry, requireRegisteredByThis, wantedNode } from "../../ipam/node-machine.ts";
import { isForbidden } from "../../kube/require-ok.ts";
import type { HostAddress } from "../../linux/rtnetlink/host-addresses.ts";
import type { IPPool } from "../../model/ip-pool.ts";
import { NODE } from "../../model/kinds.ts";
import { MACHINE_ANNOTATION } from "../../model/machine-annotation.ts";
import type { Node } from "../../model/node.ts";
import { type NodeAgentConfiguration, nodeAgentSettings } from "../../model/node-agent-configuration.ts";
import { quoted } from "../../quote.ts";
import { readHostFacts } from "../../routing/host-facts.ts";
import { kubeletAddresses, nodeAddresses, withNodeAddresses } from "../../routing/node-addresses.ts";
import { nodeLinkMtu, podMtu } from "../../routing/pod-mtu.ts";
import type { OwnOrchestratorNode } from "./own-orchestrator-node.ts";
import { withPodCidrs, withTunnels } from "./record-change.ts";
import type { RoutingAnnotation } from "./routing-annotation.ts";
import { TunnelAddresses } from "./tunnel-addresses.ts";

export interface RecordMeans {
  readonly node: string;
  readonly store: Pick<Datastore, "read" | "commit">;
  /** Whose records they are: on the orchestrator's API the kubelet reports the addresses of the host. */
  readonly datastore: "etcd" | "orchestrator" | "embedded";
  readonly allocator: Allocator;
  readonly machineIdentity: () => string | undefined;
  readonly hostAddresses: () => readonly HostAddress[];
  readonly sourceTowards: (destination: string, family: Family) => Promise<Address | undefined>;
  /** The smallest MTU of the links with a default route. */
  readonly uplinkMtu: () => number | undefined;
  /** Returns whether it was another. */
  readonly writeMtu: (mtu: number) => boolean;
  readonly orchestratorNode: OwnOrchestratorNode;
  /** What is wrong; called with the same text as long as it is. */
  readonly report: (problem: string) => void;
  readonly log: (message: string) => void;
  /** What the agent says of its routes. Absent: nothing. */
  readonly routing?: Pick<RoutingAnnotation, "annotated" | "written">;
}

/** The records that the one of this node is computed from. */
export interface RecordFacts {
  readonly node: Node | undefined;
  readonly pools: readonly IPPool[];
  /** Whether a pool cannot be read, and never could: it may need the tunnels that no other needs. */
  readonly hasUnknownPool: boolean;
  readonly configurations: readonly NodeAgentConfiguration[];
}

type Spec = Node["spec"];

const ATTEMPTS = 5;

export class NodeRecordKeeper {
  private readonly tunnels: TunnelAddresses;
  /** The node and the machine that it was found to belong to. */
  private own = "";

  constructor(private readonly means: RecordMeans) {
    this.tunnels = new TunnelAddresses(means);
  }

  /** What others may have changed unnoticed is read again. */
  distrust(): void {
    this.tunnels.distrust();
    this.means.orchestratorNode.distrust();
  }

  /** Everything is read again, as after a start. */
  forget(): void {
    this.own = "";
    this.tunnels.forget();
    this.means.orchestratorNode.distrust();
  }

  /** Whether a tunnel has no address, because the pools are full. */
  get lacksAddress(): boolean {
    return this.tunnels.lacksAddress;
  }

  /** Whether it should look again soon without a reason. */
  get isIncomplete(): boolean {
    return this.means.datastore !== "embedded" && this.means.orchestratorNode.isIncomplete;
  }

  /** Compares and corrects. Fails if it should be tried again. */
  async look(known: RecordFacts): Promise<void> {
    const { node, hostAddresses, datastore, orchestratorNode } = this.means;
    const facts = withoutTunnels(known, node);
    const addresses = hostAddresses();
    const record = facts.node;
    if (record === undefined) {
      this.keepMtu(addresses, undefined, facts);
      return this.forget();
    }
    const addressed = await this.addressed(record, addresses, facts);
    this.keepMtu(addresses, addressed(record.spec), facts);
    await this.requireOwn(record);
    // An embedded datastore is of one host: there are no others to reach.
    const isAlone = datastore === "embedded";
    const tunnels = isAlone || facts.hasUnknownPool ? undefined : await this.tunnels.take(record, facts.pools);
    const podCidrs = isAlone ? undefined : await orchestratorNode.podCidrs(record.spec);
    const change = ({ metadata, spec: before }: Node): Node => {
      const spec = withPodCidrs(addressed(before), podCidrs);
      return NODE.codec.make(metadata, tunnels === undefined ? spec : withTunnels(spec, node, tunnels));
    };
    // The copy may be older than the record: what that names is not released.
    const releases = tunnels !== undefined && this.tunnels.hasToGiveBack(tunnels);
    if (releases || !Bun.deepEquals(change(record).spec, record.spec)) await this.write(record, change);
    if (tunnels !== undefined) await this.tunnels.giveBack(tunnels);
    if (this.annotated(record) !== record) await this.writeForPeople(record);
  }

  /** The Node itself if its annotations are as they should be. */
  private annotated(record: Node): Node {
    const { annotations } = record.metadata;
    const after = this.means.routing?.annotated(annotations) ?? annotations;
    return after === annotations ? record : { ...record, metadata: { ...record.metadata, annotations: { ...after } } };
  }

  /** With the role of the plugin alone it cannot be written, and the rest of the record does not depend on it. */
  private async writeForPeople(record: Node): Promise<void> {
    const { routing, report } = this.means;
    try {
      await this.write(record, (before) => this.annotated(before));
    } catch (failure) {
      if (!isForbidden(failure)) throw failure;
      report(`Cannot write what is known of routes into the Node: ${failure.message}`);
    }
    routing?.written();
  }

  private async addressed(
    { spec }: Node,
    addresses: readonly HostAddress[],
    { configurations }: RecordFacts,
  ): Promise<(spec: Spec) => Spec> {
    const { node, sourceTowards, datastore, orchestratorNode, report } = this.means;
    const settings = nodeAgentSettings(configurations, node);
    const internalAddresses = async () =>
      datastore === "orchestrator" ? kubeletAddresses(spec) : orchestratorNode.internalAddresses(spec);
    const facts = await readHostFacts(settings, { addresses, sourceTowards, internalAddresses });
    for (const problem of nodeAddresses(spec.bgp, settings, facts).problems) report(problem);
    return (before) => {
      const found = nodeAddresses(before.bgp, settings, facts);
      const after = withNodeAddresses(before, found, addresses);
      return datastore === "orchestrator" && !listsOwnAddresses(before) ? withListOf(before, after) : after;
    };
  }

  /** The registration refuses a second machine of that name, too; but it comes later, and only now and then. */
  private async requireOwn({ metadata }: Node): Promise<void> {
    const { node, store, datastore, machineIdentity } = this.means;
    const identity = `${metadata.uid} ${metadata.annotations?.[MACHINE_ANNOTATION]}`;
    if (identity === this.own) return;
    const [answer] = (await store.read([wantedNode(node)])).answers;
    const machine = { node, machineIdentity };
    if (datastore === "orchestrator") requireRegisteredByThis(answer, machine);
    else requireOwnNodeEntry(answer, machine);
    this.own = identity;
  }

  private async write({ metadata }: Node, change: (before: Node) => Node): Promise<void> {
    const { node, store, log } = this.means;
    const key = NODE.key({ name: node });
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const entry = (await store.read([{ kind: "key", key }])).answers[0]?.[0];
      if (entry === undefined) return;
      const before = NODE.codec.read(entry.value, key);
      if (before.metadata.uid !== metadata.uid) return this.joinedAgain();
      const after = change(before);
      if (Bun.deepEquals([after.metadata, after.spec], [before.metadata, before.spec])) return;
      const value = NODE.codec.write({ ...before, metadata: after.metadata, spec: after.spec }, entry.value);
      const { ok } = await store.commit([{ kind: "update", key, value, revision: entry.revision }]);
      if (!ok) continue;
      const changed = describeChange(before.spec, after.spec);
      if (changed !== "") log(`The record of this node has changed: ${changed}`);
      return;
    }
    throw new PluginError("try-again-later", `Cannot write node ${quoted(node)}: others keep changing it`);
  }

  /** What the node had before it was deleted was released with it, the addresses of its tunnels among them. */
  private joinedAgain(): never {
    this.forget();
    throw new PluginError(
      "try-again-later",
      `Node ${quoted(this.means.node)} was deleted and has joined again meanwhile`,
    );
  }

  private keepMtu(addresses: readonly HostAddress[], spec: Spec | undefined, { pools }: RecordFacts): void {
    const { uplinkMtu, writeMtu, log } = this.means;
    const underlying = nodeLinkMtu(addresses, spec?.bgp) ?? uplinkMtu();
    const mtu = podMtu(
      underlying,
      pools.map(({ spec }) => spec),
    );
    if (mtu !== undefined && writeMtu(mtu))
      log(`New pods get an MTU of ${mtu} bytes unless the network config sets another`);
  }
}

/** The kubelet reports addresses without the length of their network; `node register` writes them with it. */
function listsOwnAddresses({ addresses = [] }: Spec): boolean {
  return addresses.some(({ address }) => address.includes("/"));
}

function withListOf({ addresses }: Spec, { addresses: _, ...after }: Spec): Spec {
  return addresses === undefined ? after : { ...after, addresses };
}

/** Pools have no tunnels while routing is disabled, and the packets of pods no headers of tunnels. */
function withoutTunnels(facts: RecordFacts, node: string): RecordFacts {
  const { routing } = nodeAgentSettings(facts.configurations, node);
  return routing === "Enabled" ? facts : { ...facts, pools: [], hasUnknownPool: false };
}

/** `ipv4Address "10.0.0.6/24" instead of "10.0.0.5/24"`: for the log. */
function describeChange(before: Spec, after: Spec): string {
  const [old, now] = [fieldsOf(before), fieldsOf(after)];
  const names = [...new Set([...old.keys(), ...now.keys()])];
  return names
    .filter((name) => old.get(name) !== now.get(name))
    .map((name) => `${name} ${now.get(name) ?? "none"} (was ${old.get(name) ?? "none"})`)
    .join(", ");
}

function fieldsOf({ bgp, ...others }: Spec): ReadonlyMap<string, string> {
  const fields = Object.entries({ ...bgp, ...others, addresses: others.addresses?.map(({ address }) => address) });
  return new Map(fields.flatMap(([name, value]) => (value === undefined ? [] : [[name, texts(value)] as const])));
}

function texts(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
