/** What `describe` shows of an IPAddressList: of each address, in the list's order, who has it, or whether a pod gets it. */
import type { Datastore } from "../../datastore/datastore.ts";
import type { ReadEach } from "../../datastore/read-each.ts";
import { type Address, formatAddress, parseAddress } from "../../ip/address.ts";
import { prefixContains } from "../../ip/prefix.ts";
import { type Pool, whyNotUsable } from "../../ipam/pools.ts";
import { describeFormerOwner } from "../../ipam/rest.ts";
import type { IPAddressList } from "../../model/ip-address-list.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import type { DescribedSection } from "../kinds/kind.ts";
import { allocationAt, blocksOf } from "./address-blocks.ts";
import { type Allocation, blockAt, describeOwner, keptOfAllocation } from "./blocks.ts";
import { keptState } from "./kept-state.ts";
import { findPools } from "./pools.ts";
import { type RestState, restState } from "./rest-state.ts";

export async function describeAddressList(
  store: Datastore,
  { spec }: IPAddressList,
  now: Date,
): Promise<readonly DescribedSection[]> {
  const addresses = spec.addresses.flatMap((text) => parseAddress(text) ?? []);
  const records = { pools: (await findPools(store)).readable, blocks: await blocksOf(store, ...addresses), now };
  const listed = addresses.map((address) => ({ address, ...stateOf(address, records) }));
  const counts = Map.groupBy(listed, ({ state }) => state);
  return [
    {
      title: "Addresses",
      summary: STATES.flatMap((state) => (counts.has(state) ? `${counts.get(state)?.length} ${state}` : [])).join(", "),
      rows: listed.map(({ address, pool, text }) => [
        formatAddress(address),
        pool === undefined ? "no pool" : `pool ${pool}`,
        text,
      ]),
    },
  ];
}

interface Records {
  readonly pools: readonly Pool[];
  readonly blocks: ReadEach<IPAMBlock>;
  readonly now: Date;
}

const STATES = ["in use", "waiting", "resting", "free", "passed over", "unknown"] as const;

interface ListedState {
  readonly pool: string | undefined;
  readonly state: (typeof STATES)[number];
  readonly text: string;
}

function stateOf(address: Address, { pools, blocks, now }: Records): ListedState {
  const around = pools.filter(({ cidr }) => prefixContains(cidr, address));
  const usable = around.find((each) => whyNotUsable(each) === undefined);
  const [first] = around;
  const pool = (usable ?? first)?.name;
  const inside = blocks.readable.filter(({ cidr }) => prefixContains(cidr, address));
  const allocation = inside.flatMap((block) => allocationAt(block, address) ?? [])[0];
  if (allocation !== undefined) return { pool, ...ownerState(allocation) };
  if (blocks.unreadable.some(({ key }) => isWithin(address, key))) {
    return { pool, state: "unknown", text: "unknown: its block is unreadable" };
  }
  if (usable === undefined) {
    const why = (first && whyNotUsable(first)) ?? "it is in no pool";
    return { pool, state: "passed over", text: `passed over: ${why}` };
  }
  const rest = inside.flatMap((block) => restState(block, address, now) ?? [])[0];
  return rest === undefined ? { pool, state: "free", text: "free" } : { pool, state: "resting", text: restText(rest) };
}

function isWithin(address: Address, key: string): boolean {
  const cidr = blockAt(key);
  return cidr !== undefined && prefixContains(cidr, address);
}

function ownerState(allocation: Allocation): Pick<ListedState, "state" | "text"> {
  const kept = keptOfAllocation(allocation);
  const owner = describeOwner(allocation);
  if (kept === undefined) return { state: "in use", text: owner };
  const { state, until = "it is released" } = keptState(kept);
  return { state, text: state === "waiting" ? `${owner}, waits until ${until}` : `${owner}, kept for it` };
}

function restText({ restsUntil, ...former }: RestState): string {
  const owner = describeFormerOwner(former);
  return `rests until ${restsUntil}${owner === undefined ? "" : `; ${owner} gets it at once`}`;
}
