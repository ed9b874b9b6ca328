import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { type Address, formatAddress } from "../../ip/address.ts";
import { type Command, type Context, EXIT_OK, UsageError, wantsJson } from "../command.ts";
import { withDatastore } from "../datastore/open.ts";
import { allocatorFor } from "./allocator.ts";
import { allocationAt, findBlock, requireAddress } from "./show-address.ts";

export const ipamRelease: Command = {
  kind: "command",
  name: "release",
  summary: "Release addresses that nothing uses any more",
  description: [
    "Nobody asks the workload: an address that is in use can be given to another afterwards.",
    "With both --ip and --handle the address is released only if it is the handle's. What is free already is no failure.",
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
    const released = await withDatastore(context, given, (store) =>
      addresses.length === 0
        ? allocatorFor(store, context).releaseHandle({ handle: handle ?? "", node: "" })
        : releaseAddresses(store, context, { addresses, handle }),
    );
    const texts = released.map(formatAddress);
    if (wantsJson(given)) context.stdout(`${JSON.stringify({ released: texts })}\n`);
    else
      context.stdout(
        texts.length === 0 ? "Nothing to release: it is free already\n" : `Released ${texts.join(", ")}\n`,
      );
    return EXIT_OK;
  },
};

/** Each only as it was seen: one that is given anew meanwhile stays. */
async function releaseAddresses(
  store: Datastore,
  context: Context,
  { addresses, handle }: { readonly addresses: readonly Address[]; readonly handle: string | undefined },
): Promise<readonly Address[]> {
  const guarded = [];
  for (const address of addresses) {
    const block = await findBlock(store, address);
    const seen = block && allocationAt(block, address);
    const owner = handle ?? seen?.handle;
    guarded.push({
      address,
      ...(owner === undefined ? {} : { handle: owner }),
      ...(seen?.sequenceNumber === undefined ? {} : { sequenceNumber: seen.sequenceNumber }),
    });
  }
  const { released, refused } = await allocatorFor(store, context).releaseAddresses(guarded);
  if (refused.length === 0) return released;
  const others = refused.map(formatAddress).join(", ");
  throw new PluginError("address-taken", `Cannot release ${others}: it belongs to another handle`, {
    details: released.length === 0 ? "" : `released: ${released.map(formatAddress).join(", ")}`,
  });
}
