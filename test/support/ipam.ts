/** A small set of pools, nodes and reservations for tests of the allocator, and requests to it. */
import type { Change, Datastore, Wanted } from "../../src/datastore/datastore.ts";
import { type Address, formatAddress, parseAddress } from "../../src/ip/address.ts";
import { type Prefix, parsePrefix } from "../../src/ip/prefix.ts";
import type { AllocatorMeans } from "../../src/ipam/allocator-means.ts";
import { blockChange, decodeBlock } from "../../src/ipam/records.ts";
import type { Assignment, AssignRequest } from "../../src/ipam/request.ts";
import { withReleases } from "../../src/ipam/rest.ts";
import { ipAddressList } from "../../src/model/ip-address-list.ts";
import { type IPPoolSpec, ipPool } from "../../src/model/ip-pool.ts";
import { ipReservation } from "../../src/model/ip-reservation.ts";
import {
  DEFAULT_IPAM_CONFIGURATION,
  type IPAMConfiguration,
  ipamConfiguration,
} from "../../src/model/ipam-configuration.ts";
import { blocksPrefix, IPAM_CONFIGURATION_KEY, resourceKey } from "../../src/model/keys.ts";
import { node as nodeKind } from "../../src/model/node.ts";

const AT_ONCE = 100;

export function prefix(text: string): Prefix {
  return parsePrefix(text) ?? fail(`"${text}" is not a prefix`);
}

export function address(text: string): Address {
  return parseAddress(text) ?? fail(`"${text}" is not an address`);
}

export function poolChange(name: string, cidr: string, more: Partial<IPPoolSpec> = {}): Change {
  const given = { apiVersion: ipPoolVersion, kind: "IPPool", metadata: { name }, spec: { cidr, ...more } };
  const pool = ipPool.readObject(given, name);
  return { kind: "put", key: resourceKey("ippools", { name }), value: ipPool.write(pool) };
}

export function nodeChange(name: string, labels: Readonly<Record<string, string>> = {}): Change {
  return {
    kind: "put",
    key: resourceKey("nodes", { name }),
    value: nodeKind.write(nodeKind.make({ name, labels }, {})),
  };
}

/** With an address, by which it is the same node for datastore and orchestrator. */
export function addressedNodeChange(name: string, address: string): Change {
  const spec = { addresses: [{ address, type: "InternalIP" }] };
  return { kind: "put", key: resourceKey("nodes", { name }), value: nodeKind.write(nodeKind.make({ name }, spec)) };
}

export function reservationChange(name: string, reservedCIDRs: string[]): Change {
  const value = ipReservation.write(ipReservation.make({ name }, { reservedCIDRs }));
  return { kind: "put", key: resourceKey("ipreservations", { name }), value };
}

export function listChange(name: string, addresses: string[], namespaceSelector = "all()"): Change {
  const value = ipAddressList.write(ipAddressList.make({ name }, { addresses, namespaceSelector }));
  return { kind: "put", key: resourceKey("ipaddresslists", { name }), value };
}

export function configurationChange(spec: Partial<IPAMConfiguration["spec"]>): Change {
  const configuration = { ...DEFAULT_IPAM_CONFIGURATION, spec: { ...DEFAULT_IPAM_CONFIGURATION.spec, ...spec } };
  return { kind: "put", key: IPAM_CONFIGURATION_KEY, value: ipamConfiguration.write(configuration) };
}

export async function seed(store: Datastore, ...changes: readonly Change[]): Promise<void> {
  for (let start = 0; start < changes.length; start += AT_ONCE)
    await store.commit(changes.slice(start, start + AT_ONCE));
}

/** As if three minutes had passed: what was released until now has rested. */
export async function letRest(store: Datastore): Promise<void> {
  const wanted = ([4, 6] as const).map((family): Wanted => ({ kind: "prefix", prefix: blocksPrefix(family) }));
  for (const entry of (await store.read(wanted)).answers.flat()) {
    const block = decodeBlock(entry);
    if (block.released !== undefined) await store.commit([blockChange(withReleases(block, []), entry.revision)]);
  }
}

/** A fixed clock, fair randomness, and no waiting. */
export function means(more: Partial<AllocatorMeans> = {}): AllocatorMeans {
  return {
    now: () => new Date("2026-01-02T03:04:05Z"),
    random: () => 0.5,
    wait: () => new Promise((resolve) => setImmediate(resolve)),
    ...more,
  };
}

/** One IPv4 address for the handle, unless `more` says otherwise. */
export function request(handle: string, more: Partial<AssignRequest> = {}): AssignRequest {
  return {
    handle,
    node: "node-1",
    attributes: {},
    intendedUse: "Workload",
    addressRequests: [{ kind: "automatic", family: 4 }],
    ...more,
  };
}

/** Addresses of both families for a container of a pod in the namespace "red", as the network plugin asks for them. */
export function podRequest(
  container: string,
  { pod, node }: { readonly pod: string; readonly node: string },
): AssignRequest {
  return request(`net.${container}`, {
    network: "net",
    interface: "eth0",
    node,
    attributes: { pod, namespace: "red" },
    addressRequests: [
      { kind: "automatic", family: 4 },
      { kind: "automatic", family: 6 },
    ],
  });
}

export function textsOf({ addresses }: Assignment): readonly string[] {
  return addresses.map((each) => formatAddress(each.address));
}

const ipPoolVersion = ipPool.make({ name: "any" }, {} as IPPoolSpec).apiVersion;

function fail(message: string): never {
  throw new Error(message);
}
