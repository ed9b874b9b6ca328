import type { Datastore } from "../../../datastore/datastore.ts";
import { type ErrorKind, PluginError } from "../../../errors.ts";
import { identity } from "../../../identity.ts";
import { type Address, formatAddress } from "../../../ip/address.ts";
import { formatPrefix, prefixContains } from "../../../ip/prefix.ts";
import { readHandleEntry } from "../../../ipam/all-records.ts";
import { keptIn, ownerOfKept } from "../../../ipam/leaks/waiting-addresses.ts";
import { decodeBlock, requirePrefix } from "../../../ipam/records.ts";
import type { GuardedAddress } from "../../../ipam/request.ts";
import { NODE_ATTRIBUTE } from "../../../model/ipam-block.ts";
import type { KeptAddress } from "../../../model/kept-address.ts";
import { blockKey, handleKey, resourceKey } from "../../../model/keys.ts";
import { tunnelTitle } from "../../../model/tunnel-address.ts";
import { quoted } from "../../../quote.ts";
import { withDatastore } from "../../datastore/open.ts";
import { refuseInUse } from "../../delete/uses.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../../main/command.ts";
import type { Clock, ClusterAccess, DatastoreAccess } from "../../main/context.ts";
import { reportError } from "../../main/report-error.ts";
import { readOrExplain, withRemedy } from "../../resources/unreadable-remedy.ts";
import { allocationAt, blocksOf } from "../address-blocks.ts";
import { type AddressUser, describeUser, findEndpoints, nameOfEndpoint, usersOfAddresses } from "../address-users.ts";
import { allocatorFor } from "../allocator.ts";
import { type Allocation, allocationsOf, describeAllocation, findBlocks, keptOfAllocation } from "../blocks.ts";
import { isHandleOf } from "../endpoint-owner.ts";
import { type NamedPod, requirePod } from "../pod-operand.ts";
import { findPools } from "../pools.ts";
import { requireAddress } from "../show/show-address.ts";
import { releaseReported } from "./release-from-reports.ts";

export async function run(context: DatastoreAccess & Clock, given: Given): Promise<ExitCode> {
  const addresses = (given.lists.get("ip") ?? []).map(requireAddress);
  const handle = given.values.get("handle");
  const pod = given.values.get("pod");
  if (pod !== undefined && (addresses.length > 0 || handle !== undefined || given.lists.has("from-report")))
    throw new UsageError("--pod cannot be combined with --ip, --handle or --from-report");
  if (given.lists.has("from-report")) return releaseReported(context, given);
  if (addresses.length === 0 && handle === undefined && pod === undefined)
    throw new UsageError("--ip ADDRESS, --pod NAMESPACE/POD, --handle HANDLE or --from-report FILE is required");
  const inUse = given.switches.has("force") ? "release" : "refuse";
  const named = pod === undefined ? undefined : requirePod(pod);
  const result = await withDatastore(context, given, (store) => {
    if (named !== undefined) return releaseKeptFor(store, context, { pod: named, inUse });
    return addresses.length === 0
      ? releaseHandle(store, context, { handle: handle ?? "", inUse })
      : releaseAddresses(store, context, { addresses, handle, inUse });
  });
  print(result, context, given);
  return result.failures.length === 0 ? EXIT_OK : EXIT_FAILED;
}

/** What happens to an address that an endpoint names. */
type InUse = "refuse" | "release";

const END_OR_FORCE = "end its container, or use --force";

interface ReleaseResult {
  readonly released: readonly Address[];
  /** Kept ones that a container used: they wait from now on. */
  readonly waiting?: readonly { readonly address: Address; readonly kept: KeptAddress }[];
  /** One for each address that is in use and was not released. */
  readonly failures: readonly PluginError[];
  readonly deleted: readonly AddressUser[];
  /** Endpoints that stay, although addresses of them were released. */
  readonly left: readonly AddressUser[];
}

function print(result: ReleaseResult, context: ClusterAccess, given: Given): void {
  const { released, waiting = [], failures, deleted, left } = result;
  const texts = released.map(formatAddress);
  const ended = waiting.map(({ address }) => formatAddress(address));
  const isSilent = !wantsJson(given) && texts.length === 0 && ended.length > 0;
  if ((texts.length + ended.length > 0 || failures.length === 0) && !isSilent) {
    const text = texts.length === 0 ? "Nothing to release: already free" : `Released ${texts.join(", ")}`;
    const names = deleted.map(({ endpoint }) => nameOfEndpoint(endpoint));
    const gone = names.length === 0 ? "" : `, deleted ${names.join(", ")}`;
    const json = {
      released: texts,
      ...(ended.length === 0 ? {} : { waiting: ended }),
      ...(names.length === 0 ? {} : { deleted: names }),
    };
    context.stdout(`${wantsJson(given) ? JSON.stringify(json) : `${text}${gone}`}\n`);
  }
  if (!wantsJson(given))
    for (const { address, kept } of waiting)
      context.stdout(`Ended the use of ${formatAddress(address)}: it waits for ${ownerOfKept(kept)}\n`);
  for (const user of left) {
    const [name, others] = [nameOfEndpoint(user.endpoint), user.addresses.join(", ")];
    context.stderr(`${name} stays and names ${others}: end its container, or delete it with --force\n`);
  }
  for (const failure of failures) reportError(context, failure);
}

/** All or nothing: nothing is released if the handle or one of its blocks is unreadable. */
async function releaseHandle(
  store: Datastore,
  context: Clock,
  { handle, inUse }: { readonly handle: string; readonly inUse: InUse },
): Promise<ReleaseResult> {
  const blocks = await readHandleBlocks(store, handle);
  if (blocks === undefined) {
    const details = `"${identity.adminTool} ipam show --ip ADDRESS" shows the handle of an address`;
    const failure = new PluginError("resource-missing", `Cannot release handle ${quoted(handle)}: it does not exist`, {
      details,
    });
    return { released: [], failures: [failure], deleted: [], left: [] };
  }
  const allocations = await allocationsOfHandle(store, handle, blocks);
  const addresses = allocations.map(({ address }) => address);
  // The container that uses it has another name.
  if (allocations.some((each) => keptOfAllocation(each) !== undefined))
    return releaseAddresses(store, context, { addresses, handle, inUse });
  const endpoints = ofHandle(await findEndpoints(store), handle);
  const users = inUse === "refuse" ? await usersOf(store, endpoints, addresses) : [];
  if (users.length > 0) {
    const failure = refuseInUse(`Cannot release handle ${quoted(handle)}`, users, END_OR_FORCE);
    return { released: [], failures: [failure], deleted: [], left: [] };
  }
  const released = await allocatorFor(store, context).releaseHandle({
    handle,
    node: "",
    ifNoneOnNode: "release those of other nodes",
  });
  return { released, failures: [], ...(await deleteEndpoints(store, released, endpoints)) };
}

/** Fails if one of the blocks is unreadable. */
async function allocationsOfHandle(
  store: Datastore,
  handle: string,
  blocks: readonly string[],
): Promise<readonly Allocation[]> {
  if (blocks.length === 0) return [];
  const { answers } = await store.read(blocks.map((cidr) => ({ kind: "key", key: blockKey(requirePrefix(cidr)) })));
  return answers
    .flat()
    .flatMap((entry) => allocationsOf(readOrExplain(entry, decodeBlock)))
    .filter((allocation) => allocation.handle === handle);
}

/** All that is kept for the pod, in all networks. */
async function releaseKeptFor(
  store: Datastore,
  context: Clock,
  { pod, inUse }: { readonly pod: NamedPod; readonly inUse: InUse },
): Promise<ReleaseResult> {
  const { readable, unreadable } = await findBlocks(store);
  const kept = readable
    .flatMap(keptIn)
    .filter((each) => each.kept.pod === pod.name && each.kept.namespace === pod.namespace);
  const addresses = kept.map(({ address }) => address);
  const [first] = unreadable;
  if (addresses.length === 0 && first !== undefined) throw withRemedy(first.key, first.failure);
  if (addresses.length > 0) return releaseAddresses(store, context, { addresses, handle: undefined, inUse });
  const failure = new PluginError(
    "resource-missing",
    `Cannot release addresses of pod "${pod.namespace}/${pod.name}": none is kept for it`,
    {
      details: `"${identity.adminTool} ipam show --addresses" lists all; those of a container that is gone are found by "${identity.adminTool} ipam check"`,
    },
  );
  return { released: [], failures: [failure], deleted: [], left: [] };
}

/** Fails if the handle is unreadable; `undefined` if it does not exist. */
async function readHandleBlocks(store: Datastore, handle: string): Promise<readonly string[] | undefined> {
  const [entry] = (await store.read([{ kind: "key", key: handleKey(handle) }])).answers.flat();
  return entry && Object.keys(readOrExplain(entry, readHandleEntry)?.blocks ?? {});
}

/** Failures of one address, which do not stop the release of the others. */
const REPORTED: ReadonlySet<ErrorKind> = new Set(["record-malformed", "resource-missing", "resource-in-use"]);

/** Releases each address only if it has not been assigned again since it was read. */
async function releaseAddresses(
  store: Datastore,
  context: Clock,
  {
    addresses,
    handle,
    inUse,
  }: {
    readonly addresses: readonly Address[];
    readonly handle: string | undefined;
    readonly inUse: InUse;
  },
): Promise<ReleaseResult> {
  const endpoints = await findEndpoints(store);
  const guarded: GuardedAddress[] = [];
  const kept = new Map<string, KeptAddress>();
  const failures: PluginError[] = [];
  for (const address of addresses) {
    try {
      const found = await lookUp(store, address, handle);
      if (found.kept !== undefined) kept.set(formatAddress(address), found.kept);
      if (inUse === "refuse") requireNotKeptInUse(address, found.kept);
      if (inUse === "refuse") await requireUnused(store, address, endpoints);
      guarded.push(found.guarded);
    } catch (failure) {
      if (!(failure instanceof PluginError) || !REPORTED.has(failure.kind)) throw failure;
      failures.push(failure);
    }
  }
  const { released, refused } = await allocatorFor(store, context).releaseAddresses(guarded);
  const changed = await deleteEndpoints(store, released, kept.size > 0 ? endpoints : ofHandle(endpoints, handle));
  const waiting = released.flatMap((address) => {
    const found = kept.get(formatAddress(address));
    return found?.user === undefined ? [] : [{ address, kept: found }];
  });
  const ended = new Set(waiting.map(({ address }) => address));
  return {
    released: released.filter((address) => !ended.has(address)),
    waiting,
    failures: [...failures, ...refused.map(otherOwner)],
    ...changed,
  };
}

/** Its node may be silent: nobody but an administrator knows whether the container still runs. */
function requireNotKeptInUse(address: Address, kept: KeptAddress | undefined): void {
  if (kept?.user === undefined) return;
  const { containerId, node } = kept.user;
  const text = formatAddress(address);
  throw new PluginError(
    "resource-in-use",
    `Cannot release ${text}: it is kept for ${ownerOfKept(kept)}, and container ${quoted(containerId)} on node ${quoted(node ?? "unknown")} uses it`,
    {
      details: `delete the pod, or the Node if its machine is lost. Once you know that the container does not run any more, --force ends its use, and the address waits for its next container; if it runs on, two containers have ${text}, and connections of one reach the other`,
    },
  );
}

async function requireUnused(store: Datastore, address: Address, endpoints: readonly AddressUser[]): Promise<void> {
  const users = await usersOf(store, endpoints, [address]);
  if (users.length === 0) return;
  throw refuseInUse(`Cannot release ${formatAddress(address)}`, users, END_OR_FORCE);
}

/** The endpoints, and the tunnels of nodes that exist. */
async function usersOf(
  store: Datastore,
  endpoints: readonly AddressUser[],
  addresses: readonly Address[],
): Promise<readonly string[]> {
  const users = usersOfAddresses(endpoints, addresses).map(describeUser);
  for (const address of addresses) {
    const { readable } = await blocksOf(store, address);
    const [allocation] = readable.flatMap((block) => allocationAt(block, address) ?? []);
    const node = allocation?.secondary[NODE_ATTRIBUTE];
    if (allocation === undefined || node === undefined || tunnelTitle(allocation.secondary) === undefined) continue;
    const { answers } = await store.read([{ kind: "key", key: resourceKey("nodes", { name: node }) }]);
    if (answers.flat().length > 0) users.push(describeAllocation(allocation));
  }
  return users;
}

/** Without those of other containers, which may name the same address. */
function ofHandle(endpoints: readonly AddressUser[], handle: string | undefined): readonly AddressUser[] {
  return endpoints.filter(({ endpoint: { spec } }) => {
    return handle === undefined || spec.containerID === undefined || isHandleOf(handle, spec.containerID);
  });
}

/** Deletes the endpoints whose addresses are all released, unless they changed meanwhile. */
async function deleteEndpoints(
  store: Datastore,
  released: readonly Address[],
  endpoints: readonly AddressUser[],
): Promise<Pick<ReleaseResult, "deleted" | "left">> {
  const texts = new Set(released.map(formatAddress));
  const [deleted, left]: [AddressUser[], AddressUser[]] = [[], []];
  for (const user of usersOfAddresses(endpoints, released)) {
    const { key, revision } = user.entry;
    const isWhole = user.addresses.every((each) => texts.has(each));
    const isDeleted = isWhole && (await store.commit([{ kind: "delete", key, revision }])).ok;
    (isDeleted ? deleted : left).push(user);
  }
  return { deleted, left };
}

/** Fails if the block or the handle of the address is unreadable. */
async function lookUp(
  store: Datastore,
  address: Address,
  handle: string | undefined,
): Promise<{ readonly guarded: GuardedAddress; readonly kept: KeptAddress | undefined }> {
  const { readable, unreadable } = await blocksOf(store, address);
  const [first] = unreadable;
  if (first) throw withRemedy(first.key, first.failure);
  if (readable.length === 0) await requirePool(store, address);
  const block = readable.find((each) => allocationAt(each, address));
  const seen = block && allocationAt(block, address);
  if (seen?.handle !== undefined) await readHandleBlocks(store, seen.handle);
  const owner = handle ?? seen?.handle;
  const kept = seen && keptOfAllocation(seen);
  const guarded: GuardedAddress = {
    address,
    ...(owner === undefined ? {} : { handle: owner }),
    ...(seen?.sequenceNumber === undefined ? {} : { sequenceNumber: seen.sequenceNumber }),
    ...(kept !== undefined && kept.user === undefined ? { how: "for good" } : {}),
  };
  return { guarded, kept };
}

/** Fails if no pool contains the address; one that is unreadable could. */
async function requirePool(store: Datastore, address: Address): Promise<void> {
  const { readable, unreadable } = await findPools(store);
  if (unreadable.length > 0 || readable.some(({ cidr }) => prefixContains(cidr, address))) return;
  const pools = readable.map(({ name, cidr }) => `${name} (${formatPrefix(cidr)})`).join(", ");
  throw new PluginError("resource-missing", `Cannot release ${formatAddress(address)}: it is not in any pool`, {
    details: pools === "" ? "there is no pool" : `pools: ${pools}`,
  });
}

function otherOwner(address: Address): PluginError {
  return new PluginError("address-taken", `Cannot release ${formatAddress(address)}: it belongs to another handle`);
}
