/**
 * An address used again: what one pod was allowed does not pass for the next pod with its address. Nodes track connections,
 * and packets of a tracked one pass without policy, so agents forget those of addresses that leave their sets.
 *
 *   entry in a kernel ──its pod goes──▶ forgotten by the agent, if it was undisturbed ──another pod has the address──▶ denied?
 *                                                                             a packet over the entry must not arrive
 *
 * Judged in the kernels: who had the addresses when an entry was made, and who has them now. Agents promise it only for
 * addresses that were in a set of their node.
 */
import { type Address, addressBytes, formatAddress } from "../../src/ip/address.ts";
import { parseInterfaceAddress } from "../../src/ip/prefix.ts";
import { familyOfMembers } from "../../src/policy/table/names.ts";
import { inverse, type TrackedEntry, type Tuple } from "../kernel/nftables/conntrack.ts";
import { BOUND, RECOVERY, REPAIR, whyDeniedAt } from "./denied.ts";
import { type Invariant, livingAttachments, type World, type WorldHost } from "./invariant.ts";
import { trackedRules } from "./packets/kernel-rules.ts";
import type { EnterHost } from "./packets/network.ts";
import { titleOf } from "./packets/probes.ts";
import { walk } from "./packets/walk.ts";
import { type PolicyState, policyReader } from "./policy-state.ts";
import { machinesIn, podStation, type Station } from "./stations.ts";

const TCP = 6;

/** An endpoint. The next container of the same pod is the same one. */
interface Owner {
  readonly name: string;
  readonly containerId: string;
}

/** One of the two pods of a connection, on the host that tracks it. */
interface End {
  readonly owner: Owner;
  /** Since when the records have no such endpoint, and whether a set of the host had its address until then. */
  unrecorded?: { readonly at: number; readonly wasInSet: boolean };
  /** Since when its container does not run. */
  endedAt?: number;
}

type Ends = Readonly<Record<"source" | "destination", End>>;

/** What is known of a host. */
interface WatchedHost {
  /** Of each entry between pods. */
  readonly ends: WeakMap<TrackedEntry, Ends | "of others">;
  registeredAt?: number | undefined;
  /** When its entries were last looked at. */
  seen?: { readonly changes: number; readonly state: PolicyState };
  /** Entries of pods that are gone. */
  former: readonly TrackedEntry[];
}

export function formerConnectionsAreForgotten(enter: EnterHost = trackedRules, read = policyReader()): Invariant {
  const hosts = new WeakMap<object, WatchedHost>();
  return {
    name: "connections of former pods are forgotten",
    when: "after each step",
    check(world) {
      const state = read(world.records);
      const survey = new Survey(world, state, enter);
      return Array.from(world.nodes.values()).flatMap(({ name, host, isRegistered }) => {
        if (host === undefined) return [];
        const watched = hosts.get(host.root) ?? { ends: new WeakMap(), former: [] };
        hosts.set(host.root, watched);
        watched.registeredAt = isRegistered ? (watched.registeredAt ?? world.now) : undefined;
        return survey.look(watched, name, host);
      });
    },
  };
}

class Survey {
  private knownOwners: ReadonlyMap<string, readonly Owner[]> | undefined;
  private knownStations: ReadonlyMap<string, Station> | undefined;
  private knownContainers: ReadonlySet<string> | undefined;

  constructor(
    private readonly world: World,
    private readonly state: PolicyState,
    private readonly enter: EnterHost,
  ) {}

  look(watched: WatchedHost, name: string, host: WorldHost): readonly string[] {
    const { connections } = host.root.nftables;
    const { changes } = connections;
    const isChanged = watched.seen?.changes !== changes || watched.seen.state !== this.state;
    if (!isChanged && watched.former.length === 0) return [];
    watched.seen = { changes, state: this.state };
    const between = connections.list().flatMap((entry) => {
      const ends = watched.ends.get(entry) ?? this.endsOf(entry);
      watched.ends.set(entry, ends);
      return ends === "of others" ? [] : [{ entry, ends }];
    });
    const former = between.filter(({ entry: { original }, ends }) => {
      const hasGone = [
        this.note(ends.source, original.source, host),
        this.note(ends.destination, original.destination, host),
      ];
      return hasGone.includes(true);
    });
    watched.former = former.map(({ entry }) => entry);
    return former
      .filter(({ ends }) => [ends.source, ends.destination].some((end) => this.isToBeForgotten(end, watched, host)))
      .flatMap(({ entry, ends }) => this.follow(entry, ends, name));
  }

  /** Who has the two addresses now, when the entry is new: not judged if several records claim one. */
  private endsOf({ original }: TrackedEntry): Ends | "of others" {
    const [source, ...otherSources] = this.owners(original.source);
    const [destination, ...otherDestinations] = this.owners(original.destination);
    if (source === undefined || destination === undefined) return "of others";
    if (otherSources.length + otherDestinations.length > 0) return "of others";
    return { source: { owner: source }, destination: { owner: destination } };
  }

  /** Whether its pod is gone, or about to go. */
  private note(end: End, address: Address, host: WorldHost): boolean {
    const { now } = this.world;
    if (this.owners(address).some(({ name }) => name === end.owner.name)) delete end.unrecorded;
    else end.unrecorded ??= { at: now, wasInSet: isInSet(host, address) };
    if (this.containers.has(end.owner.containerId)) delete end.endedAt;
    else end.endedAt ??= now;
    return end.unrecorded !== undefined || end.endedAt !== undefined;
  }

  /** Its agent has heard of the end of the pod: nothing disturbed the node, whichever of the two signs it goes by. */
  private isToBeForgotten({ unrecorded, endedAt }: End, { registeredAt }: WatchedHost, host: WorldHost): boolean {
    if (unrecorded?.wasInSet !== true || endedAt === undefined || registeredAt === undefined) return false;
    const { tamperedAt = Number.NEGATIVE_INFINITY, quietTimes } = host;
    const times = [unrecorded.at, endedAt];
    if (Math.min(...times) - Math.max(tamperedAt + REPAIR, registeredAt + RECOVERY) < 0) return false;
    if (quietTimes === undefined) return Math.max(...times) + BOUND <= this.world.now;
    return times.every((time) =>
      quietTimes.some(({ since, until }) => since + RECOVERY <= time && time + BOUND <= until),
    );
  }

  /** What is wrong: policy denies the connection between the pods that have the addresses now, and a packet of it arrives. */
  private follow({ original }: TrackedEntry, ends: Ends, node: string): readonly string[] {
    const packets = [
      { packet: original, sender: ends.source },
      { packet: inverse(original), sender: ends.destination },
    ];
    if (this.whyDenied(original, node) === undefined) return [];
    return packets.flatMap(({ packet, sender }) => {
      const reason = this.whyDenied(packet, node);
      const [source, destination] = this.stationsOf(packet);
      if (reason === undefined || source === undefined || destination === undefined) return [];
      // Nobody else knows the sequence numbers.
      if (packet.protocol === TCP && this.owners(packet.source).at(0)?.name !== sender.owner.name) return [];
      const { machine, namespace } = source;
      const network = { machines: machinesIn(this.world), enter: this.enter };
      const { end, namespace: reached, path } = walk(network, { machine, namespace, packet });
      if (end !== "delivered" || reached !== destination.namespace) return [];
      const former = [ends.source, ends.destination].filter(({ endedAt }) => endedAt !== undefined);
      const title = `${titleOf(packet)} from ${source.title} to ${destination.title}`;
      const whose = former.map(({ owner }) => owner.containerId).join(" and ");
      return [
        `${title} arrives over a connection of ${whose} that ${node} tracks (${reason}); its way: ${path.join(" | ")}`,
      ];
    });
  }

  private whyDenied(packet: Tuple, node: string): string | undefined {
    const [source, destination] = this.stationsOf(packet);
    if (source === undefined || destination === undefined) return undefined;
    return whyDeniedAt(node, { packet, source, destination }, this.state);
  }

  private stationsOf({ source, destination }: Tuple): readonly [Station | undefined, Station | undefined] {
    return [this.stations.get(formatAddress(source)), this.stations.get(formatAddress(destination))];
  }

  private owners(address: Address): readonly Owner[] {
    this.knownOwners ??= ownersIn(this.state);
    return this.knownOwners.get(formatAddress(address)) ?? [];
  }

  /** All that run, whatever the API says of their pods. */
  private get containers(): ReadonlySet<string> {
    this.knownContainers ??= new Set(
      Array.from(this.world.nodes.values()).flatMap((node) => [...node.attachments.keys()]),
    );
    return this.knownContainers;
  }

  /** By address. */
  private get stations(): ReadonlyMap<string, Station> {
    this.knownStations ??= new Map(
      livingAttachments(this.world).flatMap((attachment) => {
        const station = podStation(this.world, attachment, this.state);
        if (station === undefined || typeof station === "string") return [];
        return station.addresses.map((address) => [formatAddress(address), station] as const);
      }),
    );
    return this.knownStations;
  }
}

/** By address. */
function ownersIn({ resources }: PolicyState): ReadonlyMap<string, readonly Owner[]> {
  const owners = new Map<string, Owner[]>();
  for (const { spec, metadata } of resources.endpoints) {
    for (const text of spec.ipNetworks ?? []) {
      const address = parseInterfaceAddress(text)?.address;
      if (address === undefined || spec.containerID === undefined) continue;
      const known = owners.get(formatAddress(address)) ?? [];
      owners.set(formatAddress(address), [
        ...known,
        { name: `${metadata.namespace}/${metadata.name}`, containerId: spec.containerID },
      ]);
    }
  }
  return owners;
}

function isInSet({ root }: WorldHost, address: Address): boolean {
  const wanted = addressBytes(address).toHex();
  return Array.from(root.nftables.tables.values()).some(({ sets }) =>
    Array.from(sets).some(
      ([name, { elements }]) =>
        familyOfMembers(name) === address.family &&
        Array.from(elements.values()).some(({ key }) => key.toHex().startsWith(wanted)),
    ),
  );
}
