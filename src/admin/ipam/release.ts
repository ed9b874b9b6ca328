import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { type Address, formatAddress } from "../../ip/address.ts";
import { decodeBlock, requirePrefix } from "../../ipam/records.ts";
import type { GuardedAddress } from "../../ipam/request.ts";
import { readHandleEntry } from "../../ipam/world.ts";
import { blockKey, handleKey } from "../../model/keys.ts";
import { type Command, type Context, EXIT_FAILED, EXIT_OK, type Given, UsageError, wantsJson } from "../command.ts";
import { complain } from "../complaint.ts";
import { withDatastore } from "../datastore/open.ts";
import { readOrExplain, withWayOut } from "../resources/way-out.ts";
import { allocatorFor } from "./allocator.ts";
import { allocationAt, blocksOf, requireAddress } from "./show-address.ts";

export const ipamRelease: Command = {
  kind: "command",
  name: "release",
  summary: "Release addresses that nothing uses any more",
  description: [
    "Nobody asks the workload: an address that is in use can be given to another afterwards.",
    "With both --ip and --handle the address is released only if it is the handle's. What is free already is no failure.",
    "An address whose block or handle cannot be read is told of on stderr and not released; the others are. The exit code is then 1.",
  ].join("\n"),
  options: [
    { name: "ip", value: "ADDRESS", repeats: true, summary: "This address; may be given several times" },
    { name: "handle", value: "HANDLE", summary: "Every address of this handle (NETWORK.CONTAINER)" },
  ],
  needsDatastore: true,
  examples: [
    { command: "ipam release --ip 10.0.0.5", does: "One address" },
    { command: "ipam release --handle pods.4f6c1d", does: "All that one container held" },
  ],
  async run(context, given) {
    const addresses = (given.lists.get("ip") ?? []).map(requireAddress);
    const handle = given.values.get("handle");
    if (addresses.length === 0 && handle === undefined)
      throw new UsageError("--ip ADDRESS or --handle HANDLE is needed");
    const done = await withDatastore(context, given, (store) =>
      addresses.length === 0
        ? releaseHandle(store, context, handle ?? "")
        : releaseAddresses(store, context, { addresses, handle }),
    );
    print(done, context, given);
    return done.failures.length === 0 ? EXIT_OK : EXIT_FAILED;
  },
};

interface Done {
  readonly released: readonly Address[];
  /** Of each that was not released and is not free. */
  readonly failures: readonly PluginError[];
}

function print({ released, failures }: Done, context: Context, given: Given): void {
  const texts = released.map(formatAddress);
  if (texts.length > 0 || failures.length === 0) {
    const text = texts.length === 0 ? "Nothing to release: it is free already" : `Released ${texts.join(", ")}`;
    context.stdout(`${wantsJson(given) ? JSON.stringify({ released: texts }) : text}\n`);
  }
  for (const failure of failures) complain(context, failure);
}

/** All or nothing: a handle that cannot be read, or leads to a block that cannot be, is left alone. */
async function releaseHandle(store: Datastore, context: Context, handle: string): Promise<Done> {
  const blocks = await readHandleBlocks(store, handle);
  const keys = blocks.map((cidr) => blockKey(requirePrefix(cidr)));
  if (keys.length > 0) {
    const { answers } = await store.read(keys.map((key) => ({ kind: "key", key })));
    for (const entry of answers.flat()) readOrExplain(entry, decodeBlock);
  }
  return { released: await allocatorFor(store, context).releaseHandle({ handle, node: "" }), failures: [] };
}

/** Fails where the handle cannot be read; one that is not there has none. */
async function readHandleBlocks(store: Datastore, handle: string): Promise<readonly string[]> {
  const [entry] = (await store.read([{ kind: "key", key: handleKey(handle) }])).answers.flat();
  return Object.keys((entry && readOrExplain(entry, readHandleEntry)?.blocks) ?? {});
}

/** Each only as it was seen: one that is given anew meanwhile stays. */
async function releaseAddresses(
  store: Datastore,
  context: Context,
  { addresses, handle }: { readonly addresses: readonly Address[]; readonly handle: string | undefined },
): Promise<Done> {
  const guarded: GuardedAddress[] = [];
  const failures: PluginError[] = [];
  for (const address of addresses) {
    try {
      guarded.push(await lookUp(store, address, handle));
    } catch (failure) {
      if (!(failure instanceof PluginError) || failure.kind !== "record-malformed") throw failure;
      failures.push(failure);
    }
  }
  const { released, refused } = await allocatorFor(store, context).releaseAddresses(guarded);
  return { released, failures: [...failures, ...refused.map(notTheirs)] };
}

/** Fails where the block or the handle of the address cannot be read. */
async function lookUp(store: Datastore, address: Address, handle: string | undefined): Promise<GuardedAddress> {
  const { readable, unreadable } = await blocksOf(store, address);
  const [hidden] = unreadable;
  if (hidden) throw withWayOut(hidden.key, hidden.failure);
  const block = readable.find((each) => allocationAt(each, address));
  const seen = block && allocationAt(block, address);
  if (seen?.handle !== undefined) await readHandleBlocks(store, seen.handle);
  const owner = handle ?? seen?.handle;
  return {
    address,
    ...(owner === undefined ? {} : { handle: owner }),
    ...(seen?.sequenceNumber === undefined ? {} : { sequenceNumber: seen.sequenceNumber }),
  };
}

function notTheirs(address: Address): PluginError {
  return new PluginError("address-taken", `Cannot release ${formatAddress(address)}: it belongs to another handle`);
}
