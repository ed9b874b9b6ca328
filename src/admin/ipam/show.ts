import type { Datastore } from "../../datastore/datastore.ts";
import { DEFAULT_IPAM_CONFIGURATION, ipamConfiguration } from "../../model/ipam-configuration.ts";
import { IPAM_CONFIGURATION_KEY } from "../../model/keys.ts";
import { type Command, type Context, EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../command.ts";
import { withDatastore } from "../datastore/open.ts";
import { paint } from "../paint.ts";
import { readOrExplain } from "../resources/way-out.ts";
import { formatTable } from "../table.ts";
import { blockAt, findBlocks } from "./blocks.ts";
import { findPools, findReserved } from "./pools.ts";
import { requireAddress, showAddress } from "./show-address.ts";
import { tellOfUnreadable } from "./tell-of-unreadable.ts";
import { describeUnreadable } from "./unreadable-records.ts";
import { type PoolUsage, poolUsage, type Records, strayUsage } from "./usage.ts";

export const ipamShow: Command = {
  kind: "command",
  name: "show",
  summary: "Show how full the pools are, or who has an address",
  description: [
    "A record that cannot be read does not hide the others: it is told of on stderr, and the exit code is 1.",
    "The addresses of a block that cannot be read count as neither used nor free.",
  ].join("\n"),
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
    requireOneQuestion(given);
    return withDatastore(context, given, (store) => {
      if (address) return showAddress(store, address, { context, given });
      if (given.switches.has("show-configuration")) return showConfiguration(store, context, given);
      return showPools(store, context, given);
    });
  },
};

/** What would be passed over in silence is a mistake. */
function requireOneQuestion({ switches, values }: Given): void {
  const asked = ["--ip", "--show-blocks", "--show-configuration"].filter((flag) => {
    const name = flag.slice("--".length);
    return switches.has(name) || values.has(name);
  });
  if (asked.length > 1) throw new UsageError(`${asked.join(" and ")} are different questions: ask one at a time`);
}

async function showPools(store: Datastore, context: Context, given: Given): Promise<ExitCode> {
  const [pools, reserved, blocks] = [await findPools(store), await findReserved(store), await findBlocks(store)];
  const unreadable = [pools, reserved, blocks].flatMap((each) => each.unreadable);
  const records: Records = {
    blocks: blocks.readable,
    unreadable: blocks.unreadable.flatMap(({ key }) => blockAt(key) ?? []),
    reserved: reserved.readable,
  };
  const stray = strayUsage(pools.readable, blocks.readable);
  const usages = [...pools.readable.map((pool) => poolUsage(pool, records)), ...(stray ? [stray] : [])];
  const showsBlocks = given.switches.has("show-blocks");
  if (wantsJson(given)) {
    const told = unreadable.length === 0 ? {} : { unreadable: unreadable.map(describeUnreadable) };
    const answer = { pools: usages.map((each) => asJson(each, showsBlocks)), ...told };
    context.stdout(`${JSON.stringify(answer, undefined, 2)}\n`);
  } else if (usages.length > 0) {
    const noPool = pools.unreadable.length === 0 ? "(no pool)" : "(no readable pool)";
    context.stdout(table(usages, { context, showsBlocks, noPool }));
  } else if (unreadable.length === 0) context.stderr("There are no pools.\n");
  return tellOfUnreadable(context, unreadable);
}

const HEADER = ["POOL", "CIDR", "NODE", "SIZE", "USED", "FREE", "USAGE"];

interface How {
  readonly context: Context;
  readonly showsBlocks: boolean;
  /** What blocks are said to lie in that no pool covers. */
  readonly noPool: string;
}

function table(usages: readonly PoolUsage[], { context, showsBlocks, noPool }: How): string {
  const rows = usages.flatMap((usage) => [
    [
      `${usage.pool ?? noPool}${usage.disabled ? " (disabled)" : ""}`,
      usage.cidr,
      "",
      count(usage.size),
      `${count(usage.used)}${usage.unreadable > 0n ? ` (${count(usage.unreadable)} unreadable)` : ""}`,
      count(usage.free),
      bar(usage),
    ],
    ...(showsBlocks ? blockRows(usage) : []),
  ]);
  const columns = showsBlocks ? HEADER : HEADER.filter((title) => title !== "NODE");
  const kept = showsBlocks ? rows : rows.map((row) => row.filter((_, column) => HEADER[column] !== "NODE"));
  const [header = "", ...lines] = formatTable(columns, kept).split("\n");
  return [paint(context).bold(header), ...lines].join("\n");
}

function blockRows({ blocks, unreadableBlocks }: PoolUsage): readonly (readonly string[])[] {
  return [
    ...blocks.map((block) => [
      "",
      `  ${block.cidr}`,
      block.node ?? "(nobody)",
      count(block.size),
      `${count(block.used)}${block.borrowed > 0 ? ` (${block.borrowed} borrowed)` : ""}`,
      count(block.free),
      bar(block),
    ]),
    ...unreadableBlocks.map((cidr) => ["", `  ${cidr}`, "(unreadable)", "", "", "", ""]),
  ];
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
function asJson({ blocks, unreadableBlocks: _, ...usage }: PoolUsage, showsBlocks: boolean): object {
  const plain = (fields: object) =>
    Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [name, typeof value === "bigint" ? exact(value) : value]),
    );
  return { ...plain(usage), blockCount: blocks.length, ...(showsBlocks ? { blocks: blocks.map(plain) } : {}) };
}

function exact(number: bigint): number | string {
  return number <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(number) : String(number);
}

async function showConfiguration(store: Datastore, context: Context, given: Given): Promise<ExitCode> {
  const { answers } = await store.read([{ kind: "key", key: IPAM_CONFIGURATION_KEY }]);
  const entry = answers[0]?.[0];
  const { spec } = entry
    ? readOrExplain(entry, ({ value, key }) => ipamConfiguration.read(value, key))
    : DEFAULT_IPAM_CONFIGURATION;
  if (wantsJson(given)) context.stdout(`${JSON.stringify(spec, undefined, 2)}\n`);
  else
    context.stdout(
      formatTable(
        ["SETTING", "VALUE"],
        Object.entries(spec).map(([name, value]) => [name, `${value}`]),
      ),
    );
  return EXIT_OK;
}
