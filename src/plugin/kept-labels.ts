/**
 * Labels of a container that is connected again: `podman network reload` is a DEL and an ADD, and must not lose what a
 * user has labelled the endpoint with. Recorded on the host between the two calls, if they are not those of the config:
 *
 *   <run directory>/labels/<interface of the host>
 *
 * They are those of a running container: the ADD of one that was restarted finds another namespace, and drops them. Of
 * workloads without a pod only: a pod has its own labels.
 */
import { isJsonObject } from "../cni/json.ts";
import type { FileFolder } from "../linux/file-folder.ts";
import { placeOf } from "../linux/files.ts";
import { isNetnsGone, markNetns } from "../linux/netns-mark.ts";
import { endpointLabels } from "../model/endpoint-labels.ts";
import { parseJson } from "../parse-json.ts";
import type { Session } from "./session.ts";
import type { Workload } from "./workload.ts";

type Labels = Readonly<Record<string, string>>;

/** What an ADD finds. */
export interface Recalled {
  /** Those of the same container in the same namespace; absent if the file is of an earlier one. */
  readonly labels?: Labels;
}

/** `undefined`: nothing is recorded, as for most containers. */
export function recallLabels(workload: Workload, netns: string, { surroundings }: Session): Recalled | undefined {
  if (workload.pod !== undefined) return undefined;
  const text = surroundings.readText(`${labelsFolder(surroundings)}/${workload.hostInterface}`);
  if (text === undefined) return undefined;
  const record = decodeRecord(text);
  const isSame = record?.mark === workload.mark && record.netns === markNetns(netns);
  return isSame ? { labels: record.labels } : {};
}

/** For DEL, with what the removed endpoint had. */
export async function keepLabels(
  workload: Workload,
  { labels, netns }: { readonly labels: Labels; readonly netns: string },
  session: Session,
): Promise<void> {
  const { config, surroundings } = session;
  if (workload.pod !== undefined || netns === "" || Bun.deepEquals(labels, endpointLabels(config.labels, workload))) {
    return;
  }
  // A container that is gone is not connected again.
  if (placeOf(netns) === undefined) return;
  const folder = await surroundings.openFolder(labelsFolder(surroundings));
  removeOutdated(folder);
  const record = { mark: workload.mark, netns: markNetns(netns), labels };
  folder.write(workload.hostInterface, `${JSON.stringify(record)}\n`);
}

/** After an ADD that recalled something. */
export async function forgetLabels({ hostInterface }: Workload, { surroundings }: Session): Promise<void> {
  (await surroundings.openFolder(labelsFolder(surroundings))).remove(hostInterface);
}

/** Of containers that were stopped or removed: nobody else comes by. */
function removeOutdated(folder: FileFolder): void {
  for (const name of folder.list()) {
    const record = decodeRecord(readOr(folder, name));
    if (record !== undefined && isNetnsGone(record.netns)) folder.remove(name);
  }
}

/** Another DEL may have removed it. */
function readOr(folder: FileFolder, name: string): string {
  try {
    return folder.read(name);
  } catch {
    return "";
  }
}

interface LabelRecord {
  readonly mark: string;
  readonly netns: string;
  readonly labels: Labels;
}

/** `undefined` if it is not a record. Without a schema, which would take longer to load than an ADD. */
function decodeRecord(text: string): LabelRecord | undefined {
  let record: unknown;
  try {
    record = parseJson(text);
  } catch {
    return undefined;
  }
  if (!isJsonObject(record) || !isJsonObject(record["labels"])) return undefined;
  const { mark, netns, labels } = record;
  if (typeof mark !== "string" || typeof netns !== "string") return undefined;
  const entries = Object.entries(labels ?? {}).filter((each): each is [string, string] => typeof each[1] === "string");
  return { mark, netns, labels: Object.fromEntries(entries) };
}

function labelsFolder({ runDirectory }: Session["surroundings"]): string {
  return `${runDirectory}/labels`;
}
