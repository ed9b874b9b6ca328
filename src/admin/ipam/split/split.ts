import type { Datastore } from "../../../datastore/datastore.ts";
import { PluginError } from "../../../errors.ts";
import { parsePrefix } from "../../../ip/prefix.ts";
import type { IPPool } from "../../../model/ip-pool.ts";
import { quoted } from "../../../quote.ts";
import { withDatastore } from "../../datastore/open.ts";
import { POOL_ROW } from "../../kinds/pool.ts";
import { EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../../main/command.ts";
import type { Clock, DatastoreAccess, Terminal } from "../../main/context.ts";
import { isDryRun, surroundingsOf } from "../../resources/dry-run.ts";
import { lostRace } from "../../resources/lost-race.ts";
import { readAll, type Stored } from "../../resources/stored.ts";
import { LOCK_COMMAND, readClusterState } from "../cluster-state.ts";
import { type PoolChoice, planSplit } from "./plan-split.ts";

export async function run(context: DatastoreAccess & Clock, given: Given): Promise<ExitCode> {
  const [number, chosen] = [numberOf(given), choiceOf(given)];
  return withDatastore(context, given, async (store): Promise<ExitCode> => {
    const work = surroundingsOf(given, { store, context });
    const parts = await split(work.store, work.context, { number, chosen });
    print(parts, context, given);
    return EXIT_OK;
  });
}

function numberOf({ operands }: Given): number {
  const [text, ...others] = operands;
  if (text === undefined || others.length > 0) throw new UsageError("Give the number of parts, and nothing else");
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= 2 && Number.isInteger(Math.log2(number))) return number;
  throw new UsageError(`${quoted(text)} is not a number of parts; use a power of two: 2, 4, 8 …`);
}

function choiceOf({ values }: Given): PoolChoice {
  const [name, cidr] = [values.get("name"), values.get("cidr")];
  if ((name === undefined) === (cidr === undefined)) throw new UsageError("Give either --name NAME or --cidr CIDR");
  if (name !== undefined) return { name };
  const prefix = parsePrefix(cidr ?? "");
  if (prefix === undefined) throw new UsageError(`${quoted(cidr)} is not a CIDR; expected for example 10.0.0.0/16`);
  return { cidr: prefix };
}

async function split(
  store: Datastore,
  context: Clock,
  { number, chosen }: { readonly number: number; readonly chosen: PoolChoice },
): Promise<readonly IPPool[]> {
  await requireLock(store);
  const stored = await readAll(store, POOL_ROW);
  const plan = planSplit(stored.map(poolOf), chosen, number);
  if (plan.kind === "done") return plan.parts;
  const source = stored.find(({ resource }) => resource.metadata.name === plan.pool.metadata.name);
  if (source === undefined) return plan.parts;

  const revision = plan.marked === undefined ? source.revision : await mark(store, source, plan.marked);
  for (const part of plan.missing) await create(store, part, context);
  await requireLock(store);
  const written = await store.commit([{ kind: "delete", key: source.key, revision }]);
  if (!written.ok && written.reason !== "missing") throw lostRace(cannotSplit(plan.pool), written.reason);
  return plan.parts;
}

async function requireLock(store: Datastore): Promise<void> {
  const { isLocked } = await readClusterState(store);
  if (isLocked) return;
  throw new PluginError(
    "resource-in-use",
    "Cannot split a pool: the datastore is not locked, so that addresses may be assigned meanwhile",
    {
      details: `${LOCK_COMMAND} locks it`,
    },
  );
}

function poolOf({ resource }: Stored): IPPool {
  return POOL_ROW.codec.readObject(resource, resource.metadata.name);
}

async function mark(store: Datastore, { key, text, revision }: Stored, marked: IPPool): Promise<string> {
  const value = POOL_ROW.codec.write(marked, text);
  const written = await store.commit([{ kind: "update", key, value, revision }]);
  if (written.ok) return written.revision;
  throw lostRace(cannotSplit(marked), written.reason);
}

/** Not through `apply`, which refuses pools that overlap. A part that exists already is that of a stopped call. */
async function create(store: Datastore, part: IPPool, context: Clock): Promise<void> {
  const metadata = { ...part.metadata, uid: context.uuid(), creationTimestamp: context.now().toISOString() };
  const key = POOL_ROW.key({ name: metadata.name });
  const written = await store.commit([{ kind: "create", key, value: POOL_ROW.codec.write({ ...part, metadata }) }]);
  if (!written.ok && written.reason !== "exists")
    throw lostRace(`Cannot create ippool/${metadata.name}`, written.reason);
}

function cannotSplit({ metadata }: IPPool): string {
  return `Cannot split ippool/${metadata.name}`;
}

function print(parts: readonly IPPool[], context: Terminal, given: Given): void {
  const pools = parts.map(({ metadata, spec }) => ({ name: metadata.name, cidr: spec.cidr }));
  const dryRun = isDryRun(given);
  if (wantsJson(given)) context.stdout(`${JSON.stringify({ ...(dryRun ? { dryRun } : {}), pools }, undefined, 2)}\n`);
  else for (const { name, cidr } of pools) context.stdout(`ippool/${name} ${cidr}${dryRun ? " (dry run)" : ""}\n`);
}
