/**
 * Addresses of pods that the former storage has, and the present one has not: of ADDs that former agents have completed after
 * the copy. The present storage would assign them again.
 */
import type { Entry } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { formatAddress } from "../../ip/address.ts";
import { addressAt, attributesOf } from "../../ipam/block.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { type IPAMBlock, readBlock } from "../../model/ipam-block.ts";
import { parseKey } from "../../model/keys.ts";
import { digestOf } from "../engine/object-content.ts";
import type { Backups } from "../engine/step.ts";
import { shortened } from "../engine/wording.ts";
import { fieldsIn, itemsIn } from "../object-fields.ts";
import type { CopiedRecord } from "./conversion.ts";

export interface PodAddress {
  readonly address: string;
  readonly namespace: string;
  readonly pod: string;
  readonly handleId: string;
}

/** Those that only the former storage has. Pure. `records`: what it is converted to. */
export function lateAddresses(
  records: readonly CopiedRecord[],
  present: ReadonlyMap<string, Entry>,
): readonly PodAddress[] {
  return records
    .filter(({ key }) => parseKey(key)?.kind === "block")
    .flatMap(({ key, value, what }) => {
      const entry = present.get(key);
      const [former, now] = [readBlock(value, what), entry && readBlock(entry.value, key)];
      return former.allocations.flatMap((_, ordinal) => lateAt(former, now, ordinal));
    });
}

function lateAt(former: IPAMBlock, now: IPAMBlock | undefined, ordinal: number): readonly PodAddress[] {
  const [before, after] = [attributesOf(former, ordinal), now && attributesOf(now, ordinal)];
  const { pod, namespace } = before?.secondary ?? {};
  if (before === undefined || pod === undefined || namespace === undefined) return [];
  const isSame = after?.secondary["pod"] === pod && after.secondary["namespace"] === namespace;
  const { handleId = "" } = before;
  return isSame ? [] : [{ address: formatAddress(addressAt(former, ordinal)), namespace, pod, handleId }];
}

/** A backup: the addresses of pods that both storages had when the present one was unlocked. */
const SHARED = "shared-addresses";

/** From then on pods release them in the present storage only. `late`: those that the present storage has not. */
export async function recordShared(
  backups: Pick<Backups, "save">,
  records: readonly CopiedRecord[],
  late: readonly PodAddress[],
): Promise<void> {
  const unshared = new Set(late.map(lineOf));
  const lines = lateAddresses(records, new Map()).map(lineOf);
  await backups.save(SHARED, lines.filter((line) => !unshared.has(line)).join("\n"));
}

/** Of `late`, what the former storage has gained since. If that is not recorded: what does not belong to a pod that ends. */
export async function gainedAddresses(
  { objects, backups }: { readonly objects: PodReads; readonly backups: Pick<Backups, "read"> },
  late: readonly PodAddress[],
): Promise<readonly PodAddress[]> {
  const text = await backups.read(SHARED);
  if (text !== undefined) {
    const shared = new Set(text.split("\n"));
    return late.filter((each) => !shared.has(lineOf(each)));
  }
  const pods = await podsOf(objects, late);
  return late.filter((each) => fieldsIn(podOf(pods, each), "metadata")["deletionTimestamp"] === undefined);
}

/** Short, since there may be many. */
function lineOf({ address, handleId }: PodAddress): string {
  return `${address} ${digestOf(handleId).slice(0, 12)}`;
}

/** Throws if pods run with addresses that only the former storage has: others may get them, or have them already. */
export async function refuseLateAddresses(objects: PodReads, late: readonly PodAddress[]): Promise<void> {
  const running = await ofRunningPods(objects, late);
  if (running.length === 0) return;
  const names = running.map(({ address, namespace, pod }) => `pod ${namespace}/${pod} has ${address}`);
  const commands = running.map(
    ({ namespace, pod }) => `kubectl --namespace ${namespace} delete pod ${pod} --force --grace-period=0`,
  );
  throw new PluginError(
    "resource-in-use",
    `Addresses were assigned in the former storage after it was copied, and the present one was in use by then: ${shortened(names).join("; ")}`,
    {
      details:
        "somebody had unlocked the datastore. Delete these pods, whose successors get other addresses, and run upgrade apply again. " +
        `Without --force they would not go before the lock ends: ${shortened(commands).join("; ")}. If the machine of such a pod does not respond, make sure that it is off`,
    },
  );
}

export async function ofRunningPods(objects: PodReads, all: readonly PodAddress[]): Promise<readonly PodAddress[]> {
  const pods = await podsOf(objects, all);
  return all.filter((each) => isRunning(pods, each));
}

/** More pods than this are read at once: long after an upgrade, most addresses of the former storage are free again. */
const MOST_READS = 20;

type PodReads = Pick<ClusterObjects, "read" | "list">;

async function podsOf(objects: PodReads, late: readonly PodAddress[]): Promise<ReadonlyMap<string, Fields>> {
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

function podOf(pods: ReadonlyMap<string, Fields>, { namespace, pod }: PodAddress): Fields {
  return pods.get(`${namespace}/${pod}`) ?? {};
}

function isRunning(pods: ReadonlyMap<string, Fields>, each: PodAddress): boolean {
  const status = fieldsIn(podOf(pods, each), "status");
  if (status["phase"] === "Succeeded" || status["phase"] === "Failed") return false;
  return itemsIn(status, "podIPs").some(({ ip }) => ip === each.address) || status["podIP"] === each.address;
}
