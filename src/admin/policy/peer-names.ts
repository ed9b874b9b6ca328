/** The names of what has an address or an interface: containers, pods and nodes. Read from the datastore, as far as it can be reached. */

import type { Datastore } from "../../datastore/datastore.ts";
import { type Address, formatAddress } from "../../ip/address.ts";
import { isFinished } from "../../model/finished-pods.ts";
import { interfaceOwners } from "../../policy/compile/host-interfaces.ts";
import type { HostInterface } from "../../policy/host-interface.ts";
import type { AnyEndpoint } from "../../policy/judge/resources.ts";
import { readPolicy } from "../../policy/read-resources.ts";
import { withDatastore } from "../datastore/open.ts";
import type { Given } from "../main/command.ts";
import type { Call, Clock, DatastoreAccess } from "../main/context.ts";
import { paintStderr } from "../terminal/paint.ts";
import { addressesOf, type KnownPeers, nodeAddresses, titleOf } from "./explain/peer.ts";

const NOBODY: KnownPeers = { endpoints: [], hostEndpoints: [], nodes: [] };
/** New containers are looked up not more often than that. */
const REFRESH_MILLISECONDS = 10_000;
const PATIENCE_MILLISECONDS = 1_000;

/**
 * Does the work with the names of the datastore. A datastore that cannot be read is reported, and the work done without names: what
 * the kernel drops matters then, too. `isNeeded`: otherwise it fails.
 */
export async function withPeerNames<Result>(
  {
    context,
    given,
    isNeeded,
  }: { readonly context: DatastoreAccess & Clock; readonly given: Given; readonly isNeeded: boolean },
  work: (names: PeerNames) => Promise<Result>,
): Promise<Result> {
  let isBegun = false;
  try {
    return await withDatastore(context, given, async (store) => {
      const names = new PeerNames(context, store);
      await names.read();
      isBegun = true;
      return work(names);
    });
  } catch (failure) {
    if (isBegun || isNeeded || context.signal.aborted || !(failure instanceof Error)) throw failure;
    context.stderr(`${paintStderr(context).yellow("warning:")} names are not shown: ${failure.message}\n`);
    return work(new PeerNames(context));
  }
}

export class PeerNames {
  known = NOBODY;
  /** `NAMESPACE/NAME`, or the name of a global one; `undefined` without a datastore. */
  policies: readonly string[] | undefined;
  private byAddress: ReadonlyMap<string, string> = new Map();
  private readAt = 0;

  constructor(
    private readonly context: Call & Clock,
    private readonly store?: Datastore,
  ) {}

  readonly nameOf = (address: Address): string | undefined => this.byAddress.get(formatAddress(address));

  /** Of each interface of the node: its workload endpoint, or the host endpoint that the agent takes for it; `*`: for all others. */
  ofInterfaces(node: string, interfaces: readonly HostInterface[]): ReadonlyMap<string, string> {
    const isHere = ({ spec }: AnyEndpoint) => spec.node === node;
    const hosts = this.known.hostEndpoints.filter(isHere);
    const owners = interfaceOwners(new Map(hosts.map((host) => [host.metadata.name, host])), interfaces, []);
    return new Map([
      ...Array.from(owners, ([interfaceName, host]) => [interfaceName, `hostendpoint/${host}`] as const),
      ...this.known.endpoints
        .filter((endpoint) => isHere(endpoint) && !isFinished(endpoint))
        .map((endpoint) => [endpoint.spec.interfaceName ?? "", titleOf(endpoint)] as const),
    ]);
  }

  /** A container may be younger than what was read: reads again if none of these addresses is known. */
  async lookFor(addresses: readonly Address[]): Promise<void> {
    const { now, wait, signal } = this.context;
    const isOld = now().getTime() - this.readAt >= REFRESH_MILLISECONDS;
    if (!isOld || signal.aborted || addresses.some((address) => this.nameOf(address) !== undefined)) return;
    this.readAt = now().getTime();
    // Without an answer of the datastore the names of before are good enough.
    const reading = this.read().catch(() => {});
    await Promise.race([reading, wait(PATIENCE_MILLISECONDS)]);
  }

  async read(): Promise<void> {
    if (this.store === undefined) return;
    const { resources, nodes } = await readPolicy(this.store);
    this.known = { endpoints: resources.endpoints, hostEndpoints: resources.hostEndpoints, nodes };
    this.policies = [
      ...resources.globalNetworkPolicies.map(({ metadata }) => metadata.name),
      ...resources.networkPolicies.map(({ metadata }) => `${metadata.namespace ?? ""}/${metadata.name}`),
    ];
    this.byAddress = new Map([
      ...nodes.flatMap((node) =>
        nodeAddresses(node).map((own) => [formatAddress(own), `node ${node.metadata.name}`] as const),
      ),
      ...resources.endpoints
        .filter((endpoint) => !isFinished(endpoint))
        .flatMap((endpoint) => addressesOf(endpoint).map((own) => [formatAddress(own), titleOf(endpoint)] as const)),
    ]);
    this.readAt = this.context.now().getTime();
  }
}
