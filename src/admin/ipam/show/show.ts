import type { Datastore } from "../../../datastore/datastore.ts";
import { datastoreTime } from "../../../ipam/allocator-means.ts";
import { createPoolCommand } from "../../../ipam/pools.ts";
import { DEFAULT_IPAM_CONFIGURATION, ipamConfiguration } from "../../../model/ipam-configuration.ts";
import { IPAM_CONFIGURATION_KEY } from "../../../model/keys.ts";
import { withDatastore } from "../../datastore/open.ts";
import { EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../../main/command.ts";
import type { Call, Clock, ClusterAccess, DatastoreAccess, Terminal } from "../../main/context.ts";
import { readOrExplain } from "../../resources/unreadable-remedy.ts";
import { stdoutPage } from "../../terminal/page.ts";
import { formatTable } from "../../terminal/table.ts";
import { blockAt, findBlocks } from "../blocks.ts";
import { MAP_OPTION } from "../options.ts";
import { findPools, findReserved } from "../pools.ts";
import { reportUnreadable } from "../report-unreadable.ts";
import { describeUnreadable } from "../unreadable-records.ts";
import { type PoolUsage, poolUsage, type Records, restingIn, strayUsage } from "../usage.ts";
import { requireAddress, showAddress } from "./show-address.ts";
import { showAddresses } from "./show-addresses.ts";
import { showBorrowed } from "./show-borrowed.ts";
import { showMap } from "./show-map.ts";

export async function run(context: DatastoreAccess & Clock, given: Given): Promise<ExitCode> {
  const ip = given.values.get("ip");
  const address = ip === undefined ? undefined : requireAddress(ip);
  requireOneMode(given);
  return withDatastore(context, given, (store) => {
    if (address) return showAddress(store, address, { context, given });
    if (given.values.has(MAP_OPTION.name)) return showMap(store, { context, given });
    if (given.switches.has("show-borrowed")) return showBorrowed(store, { context, given });
    if (given.switches.has("addresses")) return showAddresses(store, { context, given });
    if (given.switches.has("show-configuration")) return showConfiguration(store, context, given);
    return showPools(store, context, given);
  });
}

/** These options exclude each other: one of them would be ignored silently. */
function requireOneMode({ switches, values }: Given): void {
  const asked = ["--ip", "--addresses", "--show-blocks", "--show-borrowed", "--show-configuration", "--map"].filter(
    (flag) => {
      const name = flag.slice("--".length);
      return switches.has(name) || values.has(name);
    },
  );
  if (values.has("pool") && !values.has("map")) throw new UsageError("--pool can be given only with --map");
  if (asked.length > 1) throw new UsageError(`${asked.join(" and ")} cannot be combined`);
}

async function showPools(store: Datastore, context: ClusterAccess & Clock, given: Given): Promise<ExitCode> {
  const [pools, reserved, blocks] = [await findPools(store), await findReserved(store), await findBlocks(store)];
  const unreadable = [pools, reserved, blocks].flatMap((each) => each.unreadable);
  const records: Records = {
    blocks: blocks.readable,
    unreadable: blocks.unreadable.flatMap(({ key }) => blockAt(key) ?? []),
    reserved: reserved.readable,
  };
  const stray = strayUsage(pools.readable, blocks.readable);
  const now = datastoreTime(store, context);
  const usages: readonly ShownUsage[] = [
    ...pools.readable.map((pool) => ({ ...poolUsage(pool, records), resting: restingIn(pool, records, now) })),
    ...(stray ? [{ ...stray, resting: 0 }] : []),
  ];
  const showsBlocks = given.switches.has("show-blocks");
  if (wantsJson(given)) {
    const reported = unreadable.length === 0 ? {} : { unreadable: unreadable.map(describeUnreadable) };
    const report = { pools: usages.map((each) => asJson(each, showsBlocks)), ...reported };
    context.stdout(`${JSON.stringify(report, undefined, 2)}\n`);
  } else if (usages.length > 0) {
    const noPool = pools.unreadable.length === 0 ? "(no pool)" : "(no readable pool)";
    context.stdout(table(usages, { context, showsBlocks, noPool }));
  } else if (unreadable.length === 0) context.stderr(`No pools found; create one: ${createPoolCommand(4)}\n`);
  return reportUnreadable(context, unreadable);
}

const HEADER = ["POOL", "CIDR", "NODE", "SIZE", "USED", "RESERVED", "FREE", "USAGE"];

interface TableOptions {
  readonly context: Call & Terminal;
  readonly showsBlocks: boolean;
  /** Shown as the pool of blocks that are outside all pools. */
  readonly noPool: string;
}

interface ShownUsage extends PoolUsage {
  /** Of the free ones. */
  readonly resting: number;
}

function table(usages: readonly ShownUsage[], { context, showsBlocks, noPool }: TableOptions): string {
  const rows = usages.flatMap((usage) => [
    [
      `${usage.pool ?? noPool}${usage.disabled ? " (disabled)" : ""}`,
      usage.cidr,
      "",
      count(usage.size),
      `${count(usage.used)}${usedNotes(usage)}`,
      count(usage.reserved),
      `${count(usage.free)}${usage.resting > 0 ? ` (${usage.resting} resting)` : ""}`,
      bar(usage),
    ],
    ...(showsBlocks ? blockRows(usage) : []),
  ]);
  const columns = showsBlocks ? HEADER : HEADER.filter((title) => title !== "NODE");
  const kept = showsBlocks ? rows : rows.map((row) => row.filter((_, column) => HEADER[column] !== "NODE"));
  return formatTable(columns, kept, stdoutPage(context), { leaveOutFirst: ["USAGE", "RESERVED", "SIZE", "CIDR"] });
}

/** ` (3 kept, 1 of them waiting)` */
function usedNotes({ unreadable, kept, waiting }: PoolUsage): string {
  const notes = [
    unreadable > 0n ? `${count(unreadable)} unreadable` : [],
    kept > 0 ? `${kept} kept${waiting > 0 ? `, ${waiting} of them waiting` : ""}` : [],
  ].flat();
  return notes.length === 0 ? "" : ` (${notes.join(", ")})`;
}

function blockRows({ blocks, unreadableBlocks }: PoolUsage): readonly (readonly string[])[] {
  return [
    ...blocks.map((block) => [
      "",
      `  ${block.cidr}`,
      block.node ?? "(no node)",
      count(block.size),
      `${count(block.used)}${block.borrowed > 0 ? ` (${block.borrowed} borrowed)` : ""}`,
      count(block.reserved),
      count(block.free),
      bar(block),
    ]),
    ...unreadableBlocks.map((cidr) => ["", `  ${cidr}`, "(unreadable)", "", "", "", "", ""]),
  ];
}

const BAR_WIDTH = 20;

/** `█████░░░░░░░░░░░░░░░ 25 %`; shows at least one mark if any address is in use. */
function bar({ used, size }: { readonly used: bigint; readonly size: bigint }): string {
  if (size === 0n) return "";
  const filled = Number((used * BigInt(BAR_WIDTH) + size - 1n) / size);
  const percent = Number((used * 1000n) / size) / 10;
  const shown = used > 0n && percent < 1 ? "<1" : String(Math.floor(percent));
  return `${"█".repeat(filled)}${"░".repeat(BAR_WIDTH - filled)} ${shown} %`;
}

const LARGEST_PLAIN = 10n ** 9n;

/** Sizes of IPv6 pools are too large to be readable with all digits. */
function count(number: bigint): string {
  return number < LARGEST_PLAIN ? String(number) : Number(number).toExponential(1);
}

/** Counts that exceed the precision of JSON numbers are written as strings. */
function asJson({ blocks, unreadableBlocks: _, ...usage }: ShownUsage, showsBlocks: boolean): object {
  const plain = (fields: object) =>
    Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [name, typeof value === "bigint" ? exact(value) : value]),
    );
  return { ...plain(usage), blockCount: blocks.length, ...(showsBlocks ? { blocks: blocks.map(plain) } : {}) };
}

function exact(number: bigint): number | string {
  return number <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(number) : String(number);
}

async function showConfiguration(store: Datastore, context: Call & Terminal, given: Given): Promise<ExitCode> {
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
        stdoutPage(context),
      ),
    );
  return EXIT_OK;
}
