/**
 * Moves the data of a cluster from etcd to the orchestrator's API. Both are locked all the time: agents keep their last state,
 * and nothing is assigned. Until the new datastore is unlocked, everything can be undone by unlocking etcd again.
 */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { PRODUCT_KEYS } from "../../model/keys.ts";
import { CLUSTER_INFORMATION } from "../../model/kinds.ts";
import { isObject } from "../../model/shape.ts";
import { readLockOwner } from "../../model/stored-resources.ts";
import { parseJson } from "../../parse-json.ts";
import { quoted } from "../../quote.ts";
import { changeRecord } from "../engine/change-record.ts";
import { compareRecords, describeDifference } from "../former-storage/compare.ts";
import type { CopiedRecord } from "../former-storage/conversion.ts";
import { copyRecords } from "../former-storage/copy-records.ts";
import { IPAM_PREFIXES, readRecords } from "../former-storage/stored-records.ts";
import { fieldsIn } from "../object-fields.ts";
import { convertRecords, MIGRATED_PREFIXES, type MigratedData } from "./convert.ts";
import type { ExportFile } from "./export-file.ts";

const KEY = CLUSTER_INFORMATION.key({ name: "default" });

export async function setLock(store: Datastore, wanted: "locked" | "unlocked"): Promise<"changed" | "unchanged"> {
  const isReady = wanted === "unlocked";
  return changeRecord(store, KEY, (value) => {
    if (value === undefined) throw notInitialized();
    const information = CLUSTER_INFORMATION.codec.read(value, KEY);
    if ((information.spec.datastoreReady !== false) === isReady) return undefined;
    if (isReady && readLockOwner(value, KEY) === "upgrade") throw ofUpgrade();
    const changed = { ...information, spec: { ...information.spec, datastoreReady: isReady } };
    return CLUSTER_INFORMATION.codec.write(changed, value);
  });
}

function ofUpgrade(): PluginError {
  return new PluginError("resource-in-use", "Cannot unlock the datastore: an upgrade has locked it", {
    details: `the upgrade unlocks it when the nodes are updated: continue it with ${identity.adminTool} upgrade apply, or go back with ${identity.adminTool} upgrade rollback`,
  });
}

export type Exported =
  | { readonly ok: true; readonly file: ExportFile; readonly notes: readonly string[] }
  | { readonly ok: false; readonly obstacles: MigratedData["obstacles"] };

/** The datastore must be locked. `run`: marks what this export becomes. */
export async function exportData(store: Datastore, run: string): Promise<Exported> {
  const entries = await readAllEntries(store, PRODUCT_KEYS.rootPrefix);
  const information = informationIn(entries.find(({ key }) => key === KEY));
  if (information === undefined) throw notInitialized();
  if (!information.isLocked) {
    throw new PluginError(
      "not-ready",
      "Cannot export the datastore: it is not locked, so that the export would be old at once",
      {
        details: `run "${identity.adminTool} datastore migrate lock" first`,
      },
    );
  }
  const { obstacles, notes, records, nodes } = convertRecords(entries, run);
  if (obstacles.length > 0) return { ok: false, obstacles };
  return { ok: true, file: { run, clusterGUID: information.clusterGUID, records, nodes }, notes };
}

/** May be interrupted anywhere and repeated. Returns what a person should know. */
export async function importData(
  store: Datastore,
  file: ExportFile,
  progress: (line: string) => void,
): Promise<readonly string[]> {
  await requireOwn(store, file);
  await copyRecords(file.records, { store, prefixes: MIGRATED_PREFIXES, progress });
  const notes: string[] = [];
  for (const node of file.nodes) notes.push(...(await importNode(store, node)));
  return notes;
}

/** What differs from the export, one line each. */
export async function checkData(store: Datastore, file: ExportFile): Promise<readonly string[]> {
  const differences = compareRecords(file.records, await readRecords(store, MIGRATED_PREFIXES));
  const nodes = await Promise.all(file.nodes.map((node) => nodeDifferences(store, node)));
  return [...differences.map(describeDifference), ...nodes.flat()];
}

/** Only an empty datastore, or one that this cluster's export was imported to and that is still locked. */
async function requireOwn(store: Datastore, { clusterGUID }: ExportFile): Promise<void> {
  const information = informationIn((await store.read([{ kind: "key", key: KEY }])).answers[0]?.[0]);
  if (information === undefined) {
    const present = await readRecords(store, IPAM_PREFIXES);
    if (present.size === 0) return;
    throw refusal(
      "it has addresses in use, but no ClusterInformation",
      "delete its IPAM records, if nothing uses them",
    );
  }
  if (information.clusterGUID !== clusterGUID) {
    throw refusal(
      `it is that of cluster ${quoted(information.clusterGUID)}, and the export of cluster ${quoted(clusterGUID)}`,
      "select the datastore that the cluster should have, or delete its resources",
    );
  }
  if (!information.isLocked) {
    throw refusal(
      "it is unlocked already, and in use",
      "it can be compared with the export by datastore migrate check",
    );
  }
}

function refusal(state: string, details: string): PluginError {
  return new PluginError("resource-exists", `Cannot import into this datastore: ${state}`, { details });
}

function notInitialized(): PluginError {
  return new PluginError("resource-missing", "Cannot migrate the datastore: it is not initialized", {
    details: "select the datastore that the cluster uses",
  });
}

function informationIn(
  entry: Entry | undefined,
): { readonly clusterGUID: string; readonly isLocked: boolean } | undefined {
  if (entry === undefined) return undefined;
  const { spec } = CLUSTER_INFORMATION.codec.read(entry.value, KEY);
  return { clusterGUID: spec.clusterGUID ?? "", isLocked: spec.datastoreReady === false };
}

/** The orchestrator creates and deletes nodes: one that it does not know is left out. */
async function importNode(store: Datastore, { key, value, what }: CopiedRecord): Promise<readonly string[]> {
  let isKnown = true;
  await changeRecord(store, key, (present) => {
    isKnown = present !== undefined;
    return present === undefined ? undefined : withNode(present, value);
  });
  return isKnown ? [] : [`${what} is left out: the orchestrator has no such node`];
}

async function nodeDifferences(store: Datastore, { key, value, what }: CopiedRecord): Promise<readonly string[]> {
  const present = (await store.read([{ kind: "key", key }])).answers[0]?.[0]?.value;
  return present === undefined || withNode(present, value) === undefined ? [] : [`${what} is not imported yet`];
}

/** `undefined` if it has everything already. */
function withNode(present: string, exported: string): string | undefined {
  const [node, wanted] = [objectIn(present), objectIn(exported)];
  const [metadata, spec] = [fieldsIn(node, "metadata"), fieldsIn(node, "spec")];
  const annotations = { ...fieldsIn(metadata, "annotations"), ...fieldsIn(wanted, "annotations") };
  const changed = { ...node, metadata: { ...metadata, annotations }, spec: { ...spec, ...fieldsIn(wanted, "spec") } };
  return Bun.deepEquals(changed, node) ? undefined : JSON.stringify(changed);
}

function objectIn(text: string): Readonly<Record<string, unknown>> {
  const value = parseJson(text);
  return isObject(value) ? value : {};
}
