/** Who uses a resource: such a resource is deleted only with --force. */
import { counted, listed } from "../../counted.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { readEach } from "../../datastore/read-each.ts";
import { PluginError } from "../../errors.ts";
import type { HostEndpoint } from "../../model/host-endpoint.ts";
import { HOST_ENDPOINT } from "../../model/kinds.ts";
import type { Node } from "../../model/node.ts";
import type { Profile } from "../../model/profile.ts";
import { tunnelTitle } from "../../model/tunnel-address.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { allocationAt, blocksOf } from "../ipam/address-blocks.ts";
import { addressesOfEndpoint, describeUser, findEndpoints } from "../ipam/address-users.ts";
import { allocationsOf, describeAllocation, findBlocks } from "../ipam/blocks.ts";
import type { StoredResource } from "../kinds/kind.ts";

const SHOWN_USERS = 10;

/**
 * The workloads on the node: its endpoints, and addresses that are recorded for it and have no endpoint. Those of its
 * tunnels are released with it.
 */
export async function usersOfNode(store: Datastore, { resource }: StoredResource<Node>): Promise<readonly string[]> {
  const { name } = resource.metadata;
  const endpoints = (await findEndpoints(store)).filter(({ endpoint }) => endpoint.spec.node === name);
  const known = new Set(endpoints.flatMap(({ addresses }) => addresses));
  const allocations = (await findBlocks(store)).readable
    .flatMap(allocationsOf)
    .filter(({ secondary }) => secondary["node"] === name && tunnelTitle(secondary) === undefined)
    .map(describeAllocation)
    .filter((text) => !known.has(text.split(" ")[0] ?? ""));
  return [...endpoints.map(describeUser), ...allocations];
}

/** The addresses of the endpoint that are allocated: a DEL has not come yet. */
export async function usersOfEndpoint(
  store: Datastore,
  { resource }: StoredResource<WorkloadEndpoint>,
): Promise<readonly string[]> {
  const users: string[] = [];
  for (const address of addressesOfEndpoint(resource)) {
    const { readable } = await blocksOf(store, address);
    const allocation = readable.flatMap((block) => allocationAt(block, address) ?? [])[0];
    const isItsOwn = allocation?.handle?.endsWith(`.${resource.spec.containerID}`) ?? false;
    if (allocation && isItsOwn) users.push(describeAllocation(allocation));
  }
  return users;
}

/** The endpoints that name the profile: they would be closed as soon as policy is enforced. */
export async function usersOfProfile(
  store: Datastore,
  { resource }: StoredResource<Profile>,
): Promise<readonly string[]> {
  const { name } = resource.metadata;
  const isUser = ({ spec }: WorkloadEndpoint | HostEndpoint) => spec.profiles?.includes(name) === true;
  const workloads = (await findEndpoints(store)).filter(({ endpoint }) => isUser(endpoint));
  const entries = await readAllEntries(store, HOST_ENDPOINT.prefix());
  const hosts = readEach(entries, ({ key, value }) => HOST_ENDPOINT.codec.read(value, key)).readable.filter(isUser);
  return [...workloads.map(describeUser), ...hosts.map(({ metadata }) => `hostendpoint/${metadata.name}`)];
}

export function refuseInUse(action: string, users: readonly string[], remedy: string): PluginError {
  const count = users.length === 1 ? "" : ` by ${counted(users.length, "user")}`;
  return new PluginError("resource-in-use", `${action}: it is in use${count}: ${listed(users, SHOWN_USERS)}`, {
    details: remedy,
  });
}
