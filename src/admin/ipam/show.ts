import type { Datastore } from "../../datastore/datastore.ts";
import { DEFAULT_IPAM_CONFIGURATION, ipamConfiguration } from "../../model/ipam-configuration.ts";
import { IPAM_CONFIGURATION_KEY } from "../../model/keys.ts";
import { type Command, type Context, EXIT_OK, type Given, wantsJson } from "../command.ts";
import { withDatastore } from "../datastore/open.ts";
import { paint } from "../paint.ts";
import { formatTable } from "../table.ts";
import { readAllBlocks } from "./blocks.ts";
import { readPools, readReserved } from "./pools.ts";
import { requireAddress, showAddress } from "./show-address.ts";
import { type PoolUsage, poolUsage, strayUsage } from "./usage.ts";

export const ipamShow: Command = {
  kind: "command",
  name: "show",
  summary: "Show how full the pools are, or who has an address",
  options: [
    { name: "show-blocks", summary: "Also every block, its node and how full it is" },
    { name: "show-configuration", summary: "How blocks are given to nodes, instead of the pools" },
    { name: "ip", value: "ADDRESS", summary: "Who has this address, since when and on which node" },
  ],
  needsDatastore: true,
  examples: [
    { command: "ipam show", does: "Every pool, used and free" },
    { command: "ipam show --show-blocks", does: "And which node has which block" },
    { command: "ipam show --ip 10.0.0.5", does: "Whose is it?" },
  ],
  async run(context, given) {
    const ip = given.values.get("ip");
    const address = ip === undefined ? undefined : requireAddress(ip);
    await withDatastore(context, given, (store) => {
      if (address) return showAddress(store, address, { context, given });
      if (given.switches.has("show-configuration")) return showConfiguration(store, context, given);
      return showPools(store, context, given);
    });
    return EXIT_OK;
  },
};

async function showPools(store: Datastore, context: Context, given: Given): Promise<void> {
  const [pools, reserved] = [await readPools(store), await readReserved(store)];
  const blocks = await readAllBlocks(store);
  const stray = strayUsage(pools, blocks);
  const usages = [...pools.map((pool) => poolUsage(pool, blocks, reserved)), ...(stray ? [stray] : [])];
  const showsBlocks = given.switches.has("show-blocks");
  if (wantsJson(given)) {
    context.stdout(`${JSON.stringify({ pools: usages.map((each) => asJson(each, showsBlocks)) }, undefined, 2)}\n`);
    return;
  }
  if (usages.length === 0) context.stderr("There are no pools.\n");
  else context.stdout(table(usages, showsBlocks, context));
}

const HEADER = ["POOL", "CIDR", "NODE", "SIZE", "USED", "FREE", "USAGE"];

function table(usages: readonly PoolUsage[], showsBlocks: boolean, context: Context): string {
  const rows = usages.flatMap((usage) => [
    [nameOf(usage), usage.cidr, "", count(usage.size), count(usage.used), count(usage.free), bar(usage)],
    ...(showsBlocks ? usage.blocks : []).map((block) => [
      "",
      `  ${block.cidr}`,
      block.node ?? "(nobody)",
      count(block.size),
      `${count(block.used)}${block.borrowed > 0 ? ` (${block.borrowed} borrowed)` : ""}`,
      count(block.free),
      bar(block),
    ]),
  ]);
  const columns = showsBlocks ? HEADER : HEADER.filter((title) => title !== "NODE");
  const kept = showsBlocks ? rows : rows.map((row) => row.filter((_, column) => HEADER[column] !== "NODE"));
  const [header = "", ...lines] = formatTable(columns, kept).split("\n");
  return [paint(context).bold(header), ...lines].join("\n");
}

function nameOf({ pool, disabled }: PoolUsage): string {
  return `${pool ?? "(no pool)"}${disabled ? " (disabled)" : ""}`;
}

const BAR_WIDTH = 20;

/** `█████░░░░░░░░░░░░░░░ 25 %`; anything in use shows at least one mark. */
function bar({ used, size }: { readonly used: bigint; readonly size: bigint }): string {
  if (size === 0n) return "";
  const filled = Number((used * BigInt(BAR_WIDTH) + size - 1n) / size);
  const percent = Number((used * 1000n) / size) / 10;
  const shown = used > 0n && percent < 1 ? "<1" : String(Math.floor(percent));
  return `${"█".repeat(filled)}${"░".repeat(BAR_WIDTH - filled)} ${shown} %`;
}

const LARGEST_PLAIN = 10n ** 9n;

/** IPv6 pools hold more than anybody reads digit by digit. */
function count(number: bigint): string {
  return number < LARGEST_PLAIN ? String(number) : Number(number).toExponential(1);
}

/** Counts are text where a script's numbers could not hold them. */
function asJson({ blocks, ...usage }: PoolUsage, showsBlocks: boolean): object {
  const plain = (fields: object) =>
    Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [name, typeof value === "bigint" ? exact(value) : value]),
    );
  return { ...plain(usage), blockCount: blocks.length, ...(showsBlocks ? { blocks: blocks.map(plain) } : {}) };
}

function exact(number: bigint): number | string {
  return number <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(number) : String(number);
}

async function showConfiguration(store: Datastore, context: Context, given: Given): Promise<void> {
  const { answers } = await store.read([{ kind: "key", key: IPAM_CONFIGURATION_KEY }]);
  const entry = answers[0]?.[0];
  const { spec } = entry ? ipamConfiguration.read(entry.value, entry.key) : DEFAULT_IPAM_CONFIGURATION;
  if (wantsJson(given)) context.stdout(`${JSON.stringify(spec, undefined, 2)}\n`);
  else
    context.stdout(
      formatTable(
        ["SETTING", "VALUE"],
        Object.entries(spec).map(([name, value]) => [name, `${value}`]),
      ),
    );
}
