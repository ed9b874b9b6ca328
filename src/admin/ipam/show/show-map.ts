/** `ipam show --map`: the blocks of the pools as a map in the terminal. */

import type { Datastore } from "../../../datastore/datastore.ts";
import { createPoolCommand } from "../../../ipam/pools.ts";
import { quoted } from "../../../quote.ts";
import { type ExitCode, type Given, UsageError, wantsJson } from "../../main/command.ts";
import type { ClusterAccess } from "../../main/context.ts";
import { paint } from "../../terminal/paint.ts";
import { blockAt, findBlocks } from "../blocks.ts";
import { MAP_OPTION } from "../options.ts";
import { findPools, findReserved } from "../pools.ts";
import { reportUnreadable } from "../report-unreadable.ts";
import { drawLegend, drawMap } from "./draw-map.ts";
import { nodeStyle, USAGE_STYLE } from "./map-styles.ts";
import { mapPool } from "./pool-map.ts";

/** Wide enough for rows of 64 blocks. */
const USUAL_WIDTH = 100;

export async function showMap(
  store: Datastore,
  { context, given }: { readonly context: ClusterAccess; readonly given: Given },
): Promise<ExitCode> {
  if (wantsJson(given)) throw new UsageError("--map is a drawing; use --show-blocks -o json for a script");
  const [pools, reserved, blocks] = [await findPools(store), await findReserved(store), await findBlocks(store)];
  const records = {
    blocks: blocks.readable,
    unreadable: blocks.unreadable.flatMap(({ key }) => blockAt(key) ?? []),
    reserved: reserved.readable,
  };
  const name = given.values.get("pool");
  const wanted = pools.readable.filter((pool) => name === undefined || pool.name === name);
  if (name !== undefined && wanted.length === 0) throw new UsageError(`There is no readable pool ${quoted(name)}`);
  const maps = wanted.map((pool) => mapPool(pool, records));
  const style = given.values.get(MAP_OPTION.name) === "node" ? nodeStyle(maps) : USAGE_STYLE;
  const page = { paint: paint(context), width: context.terminalWidth || USUAL_WIDTH };
  for (const map of maps) context.stdout(`${drawMap(map, style, page)}\n`);
  if (maps.some(({ blocks: count }) => count > 0)) context.stdout(drawLegend(style, page));
  if (maps.length === 0) context.stderr(`No pools found; create one: ${createPoolCommand(4)}\n`);
  return reportUnreadable(
    context,
    [pools, reserved, blocks].flatMap((each) => each.unreadable),
  );
}
