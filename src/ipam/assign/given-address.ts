/**
 * This very address, asked for by name.
 *
 * It must lie in an enabled pool; node selectors, allowed uses and reservations
 * do not apply to somebody who knows what he asks for. A block that does not
 * exist yet is claimed for this host.
 */

import { PluginError } from "../../errors.ts";
import { type Address, formatAddress } from "../../ip/address.ts";
import { blockOf } from "../../ip/block.ts";
import { prefixContains } from "../../ip/prefix.ts";
import type { BlockAttribute } from "../../model/ipam-block.ts";
import { hostAffinity } from "../../model/ipam-block.ts";
import { quoted } from "../../quote.ts";
import { assignOrdinal, attributesOf, emptyBlock, ordinalIn, ordinalsOf, type Taken } from "../block.ts";
import { poolHolding } from "../pools.ts";
import type { KnownBlock } from "../view.ts";
import { type Choice, type Search, takeAndClaim, takeFrom } from "./choice.ts";
import { keepAddress } from "./held-address.ts";

export function givenAddress(search: Search, address: Address): Choice {
  return whatIsHeld(search, address) ?? fromPool(search, address);
}

/** Who holds it gets it back, whatever became of its pool. */
function whatIsHeld(search: Search, address: Address): Choice | undefined {
  const { view, request } = search;
  for (const known of view.knownBlocks(address.family)) {
    const ordinal = ordinalIn(known.block, address);
    if (ordinal !== undefined && ordinalsOf(known.block, request).includes(ordinal)) {
      return keepAddress(search, known, ordinal);
    }
  }
  const unread = view.handleBlocks(request.handle, address.family).filter((cidr) => prefixContains(cidr, address));
  const wanted = unread.filter((cidr) => view.block(cidr).kind === "unknown").map((cidr) => view.wantedBlock(cidr));
  return wanted.length > 0 ? { kind: "read", wanted } : undefined;
}

function fromPool(search: Search, address: Address): Choice {
  const { view, request, sequenceNumber } = search;
  if (search.isHostAddress(address)) {
    const reason = "this host, or its gateway, has it";
    throw new PluginError("address-taken", `Cannot assign address "${formatAddress(address)}": ${reason}`);
  }
  const pool = poolHolding(view.pools(), address);
  const cidr = blockOf(address, pool.blockLength);
  const known = view.block(cidr);
  if (known.kind === "unknown") return { kind: "read", wanted: [view.wantedBlock(cidr)] };
  if (known.kind === "present") return fromExistingBlock(search, address, known);

  const block = emptyBlock(cidr, hostAffinity(request.node), sequenceNumber);
  const taken = assignOrdinal(block, ordinalIn(block, address) ?? -1, search.attributes);
  if (!taken) throw takenBy(address, undefined);
  return takeAndClaim(search, { taken, before: { block }, affinity: view.affinity(cidr) });
}

function fromExistingBlock(search: Search, address: Address, known: KnownBlock): Choice {
  const { view, request, attributes } = search;
  const { block } = known;
  const ordinal = ordinalIn(block, address) ?? -1;
  if (view.configuration().strictAffinity && block.affinity !== hostAffinity(request.node)) {
    const owner = block.affinity ?? "nobody";
    throw new PluginError(
      "address-taken",
      `Cannot assign address "${formatAddress(address)}": its block belongs to ${quoted(owner)} and strictAffinity is on`,
    );
  }
  const taken: Taken | undefined = assignOrdinal(block, ordinal, attributes);
  if (!taken) throw takenBy(address, attributesOf(block, ordinal));
  return takeFrom(search, known, taken);
}

function takenBy(address: Address, owner: BlockAttribute | undefined): PluginError {
  const { pod, namespace, node } = owner?.secondary ?? {};
  const who = [
    `handle ${quoted(owner?.handleId ?? "unknown")}`,
    pod === undefined ? [] : `pod "${namespace === undefined ? pod : `${namespace}/${pod}`}"`,
    node === undefined ? [] : `node ${quoted(node)}`,
  ].flat();
  return new PluginError(
    "address-taken",
    `Cannot assign address "${formatAddress(address)}": it is taken by ${who.join(", ")}`,
  );
}
