/**
 * Whether somebody has assigned or released addresses in the present storage while it should have been locked. What the
 * former storage says must not replace such records: the addresses are those of running pods.
 */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { formatAddress } from "../../ip/address.ts";
import { addressAt, attributesOf } from "../../ipam/block.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { type IPAMBlock, readBlock } from "../../model/ipam-block.ts";
import { parseKey } from "../../model/keys.ts";
import { fieldsIn, itemsIn } from "../manifest/workload.ts";
import { digestOf } from "../object-content.ts";
import { isIpam } from "./compare.ts";
import type { CopiedRecord } from "./conversion.ts";
import { copiesMark, presentLock, replaceCopiesMark } from "./lock.ts";
import { IPAM_PREFIXES, readRecords } from "./stored-records.ts";

/** In place of the digest: the first copy has begun, or a rollback deletes them. Nobody uses them then. */
export const INCOMPLETE = "incomplete";
/** In place of the digest: the step "unlock" writes what came late. */
const CORRECTED = "being-corrected";

/** "unknown": the mark is lost. */
export type CopiesState = "incomplete" | "untouched" | "being-corrected" | "used" | "unknown";

/** `present`: the records as they are copied. From then on a difference is somebody else's. */
export async function recordCopies(store: Datastore, present: ReadonlyMap<string, Entry>): Promise<void> {
  await replaceCopiesMark(store, await copiesMark(store), digestOfRecords(present));
}

/** Before what came late is written. */
export async function beginCorrection(store: Datastore): Promise<void> {
  await replaceCopiesMark(store, await copiesMark(store), CORRECTED);
}

/** `present`: the records, if they were read. */
export async function copiesState(store: Datastore, present?: ReadonlyMap<string, Entry>): Promise<CopiesState> {
  const lock = await presentLock(store);
  const mark = await copiesMark(store);
  if (mark === INCOMPLETE || mark === CORRECTED) return mark;
  const records = present ?? (await readRecords(store, IPAM_PREFIXES));
  // The lock is copied first, and deleted last.
  if (lock === "absent") return [...records.keys()].some(isIpam) ? "unknown" : "incomplete";
  if (mark === undefined) return lock === "unlocked" ? "used" : "unknown";
  return mark === digestOfRecords(records) ? "untouched" : "used";
}

/** Whether others have assigned or released addresses: the former storage must not replace them. Pure. */
export function areCopiesUsed(
  state: CopiesState,
  records: readonly CopiedRecord[],
  present: ReadonlyMap<string, Entry>,
): boolean {
  return isUndecided(state) ? addressesOfPresent(records, present).length > 0 : state === "used";
}

/** The mark does not say whether others have used the copies: their content does. */
export function isUndecided(state: CopiesState): state is "being-corrected" | "unknown" {
  return state === CORRECTED || state === "unknown";
}

/** An address that the present storage has assigned, and the former one has not: to replace or delete the copies loses it. Pure. */
export function addressesOfPresent(
  records: readonly CopiedRecord[],
  present: ReadonlyMap<string, Entry>,
): readonly string[] {
  const wanted = new Map(records.map((record) => [record.key, record]));
  return [...present.values()]
    .filter(({ key }) => parseKey(key)?.kind === "block")
    .flatMap(({ key, value }) => {
      const record = wanted.get(key);
      const [now, former] = [readBlock(value, key), record && readBlock(record.value, record.what)];
      return now.allocations.flatMap((_, ordinal) => {
        const [after, before] = [attributesOf(now, ordinal), former && attributesOf(former, ordinal)];
        return after === undefined || after.handleId === before?.handleId
          ? []
          : [formatAddress(addressAt(now, ordinal))];
      });
    });
}

function digestOfRecords(records: ReadonlyMap<string, Entry>): string {
  const texts = [...records.values()].filter(({ key }) => isIpam(key)).map(({ key, value }) => `${key} ${value}`);
  return digestOf(texts.toSorted().join("\n"));
}

/** An address of a pod that the former storage has, and the present one has not. */
export interface LateAddress {
  readonly address: string;
  readonly namespace: string;
  readonly pod: string;
}

/** Pure. `records`: what the former storage is converted to. */
export function lateAddresses(
  records: readonly CopiedRecord[],
  present: ReadonlyMap<string, Entry>,
): readonly LateAddress[] {
  return records
    .filter(({ key }) => parseKey(key)?.kind === "block")
    .flatMap(({ key, value, what }) => {
      const entry = present.get(key);
      const [former, now] = [readBlock(value, what), entry && readBlock(entry.value, key)];
      return former.allocations.flatMap((_, ordinal) => lateAt(former, now, ordinal));
    });
}

function lateAt(former: IPAMBlock, now: IPAMBlock | undefined, ordinal: number): readonly LateAddress[] {
  const [before, after] = [attributesOf(former, ordinal), now && attributesOf(now, ordinal)];
  const { pod, namespace } = before?.secondary ?? {};
  if (before === undefined || pod === undefined || namespace === undefined) return [];
  const isSame = after?.secondary["pod"] === pod && after.secondary["namespace"] === namespace;
  return isSame ? [] : [{ address: formatAddress(addressAt(former, ordinal)), namespace, pod }];
}

/** Throws if pods run with addresses that only the former storage has: others may get them, or have them already. */
export async function refuseLateAddresses(
  objects: Pick<ClusterObjects, "read" | "list">,
  late: readonly LateAddress[],
): Promise<void> {
  const pods = await podsOf(objects, late);
  const running = late.filter((each) => isRunning(pods, each));
  if (running.length === 0) return;
  const names = running.map(({ address, namespace, pod }) => `pod ${namespace}/${pod} has ${address}`);
  const commands = running.map(
    ({ namespace, pod }) => `kubectl --namespace ${namespace} delete pod ${pod} --force --grace-period=0`,
  );
  throw new PluginError(
    "resource-in-use",
    `Addresses were assigned in the former storage after it was copied, and the present one was in use by then: ${names.join("; ")}`,
    {
      details:
        "somebody had unlocked the datastore. Delete these pods, whose successors get other addresses, and run upgrade apply again. " +
        `Without --force they would not go before the lock ends: ${commands.join("; ")}. If the machine of such a pod does not respond, make sure that it is off`,
    },
  );
}

/** More pods than this are read at once: long after an upgrade, most addresses of the former storage are free again. */
const MOST_READS = 20;

async function podsOf(
  objects: Pick<ClusterObjects, "read" | "list">,
  late: readonly LateAddress[],
): Promise<ReadonlyMap<string, Fields>> {
  const pods =
    late.length > MOST_READS
      ? await objects.list("/api/v1/pods")
      : await Promise.all(
          late.map(({ namespace, pod }) => objects.read(`/api/v1/namespaces/${namespace}/pods/${pod}`)),
        );
  return new Map(
    pods.flatMap((pod) => {
      const { namespace, name } = fieldsIn(pod ?? {}, "metadata");
      return pod === undefined ? [] : [[`${namespace}/${name}`, pod] as const];
    }),
  );
}

function isRunning(pods: ReadonlyMap<string, Fields>, { address, namespace, pod }: LateAddress): boolean {
  const status = fieldsIn(pods.get(`${namespace}/${pod}`) ?? {}, "status");
  if (status["phase"] === "Succeeded" || status["phase"] === "Failed") return false;
  return itemsIn(status, "podIPs").some(({ ip }) => ip === address) || status["podIP"] === address;
}
