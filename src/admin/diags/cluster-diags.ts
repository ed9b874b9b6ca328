import { counted } from "../../counted.ts";
import { describeFailure } from "../../errors.ts";
import { API_VERSION, apiVersionOf, FLOWS_API, identity, OPERATOR_API } from "../../identity.ts";
import { type ClusterObjects, clusterObjects, type Fields } from "../../kube/objects.ts";
import { isDuration, millisecondsOf } from "../../model/duration.ts";
import { PUBLIC_KINDS } from "../../model/kinds.ts";
import { isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";
import { withCluster } from "../cluster/access.ts";
import { COMPONENT_NAMESPACES } from "../cluster/installed-image.ts";
import { EXIT_OK, type ExitCode, type Given, UsageError } from "../main/command.ts";
import type { Call, Clock, DatastoreAccess } from "../main/context.ts";
import { type Missing, writeArchive } from "./archive.ts";
import { choosePods, type DiagnosedPod, podsIn } from "./diagnosed-pods.ts";
import { flowsTime, MOST_FLOWS, USUAL_LOGS, USUAL_PARALLELISM } from "./options.ts";
import type { ArchivedFile } from "./tar.ts";

export async function run(context: DatastoreAccess & Clock, given: Given): Promise<ExitCode> {
  const flows = flowsTime(given);
  const since = flows === undefined ? {} : { flowsSince: context.now().getTime() - flows };
  const settings = { ...settingsOf(given), ...since };
  const collected = await withCluster(context, given, (client) =>
    collect(clusterObjects(client, context.signal), settings, context),
  );
  await writeArchive(collected, context, given);
  return EXIT_OK;
}

interface Settings {
  readonly sinceSeconds: number | undefined;
  readonly maxLogs: number;
  readonly parallelism: number;
  readonly focusNodes: readonly string[];
  /** Milliseconds since 1970; absent: no flows. */
  readonly flowsSince?: number;
}

function settingsOf(given: Given): Settings {
  const since = given.values.get("since");
  if (since !== undefined && !(isDuration(since) && millisecondsOf(since) > 0)) {
    throw new UsageError(`"--since" is ${quoted(since)}: must be a duration such as 5s, 2m or 3h`);
  }
  return {
    sinceSeconds: since === undefined ? undefined : Math.ceil(millisecondsOf(since) / 1000),
    maxLogs: numberOf(given, "max-logs", { least: 0, usual: USUAL_LOGS }),
    parallelism: numberOf(given, "max-parallelism", { least: 1, usual: USUAL_PARALLELISM }),
    focusNodes: (given.values.get("focus-nodes") ?? "").split(",").filter((name) => name !== ""),
  };
}

function numberOf(
  given: Given,
  name: string,
  { least, usual }: { readonly least: number; readonly usual: number },
): number {
  const text = given.values.get(name);
  if (text === undefined) return usual;
  if (/^\d{1,6}$/.test(text) && Number(text) >= least) return Number(text);
  throw new UsageError(`"--${name}" is ${quoted(text)}: must be a whole number, at least ${least}`);
}

/** Where lists of objects are, and the file for them. */
function listPaths(): readonly (readonly [file: string, path: string])[] {
  const own = PUBLIC_KINDS.map(({ plural }) => [`resources/${plural}.json`, `/apis/${API_VERSION}/${plural}`] as const);
  const operator = ["installations", `${identity.title.toLowerCase()}statuses`].map(
    (plural) => [`operator/${plural}.json`, `/apis/${apiVersionOf(OPERATOR_API)}/${plural}`] as const,
  );
  const workloads = NAMESPACES.flatMap((namespace) => [
    ...["daemonsets", "deployments"].map(
      (plural) => [`${namespace}/${plural}.json`, `/apis/apps/v1/namespaces/${namespace}/${plural}`] as const,
    ),
    ...["pods", "events", "configmaps"].map(
      (plural) => [`${namespace}/${plural}.json`, `/api/v1/namespaces/${namespace}/${plural}`] as const,
    ),
  ]);
  return [["nodes.json", "/api/v1/nodes"], ...own, ...operator, ...workloads];
}

const NAMESPACES: readonly string[] = [...new Set<string>([...COMPONENT_NAMESPACES, identity.operator])];

async function collect(objects: ClusterObjects, settings: Settings, context: Call) {
  const files: ArchivedFile[] = [];
  const missing: Missing[] = [];
  const add = async (path: string, what: string, read: () => Promise<string>) => {
    try {
      files.push({ path, text: await read() });
    } catch (failure) {
      context.signal.throwIfAborted();
      missing.push({ what, reason: describeFailure(failure) });
    }
  };
  await add("version.json", "version of the API", async () => json(await objects.read("/version")));
  const pods: DiagnosedPod[] = [];
  await inParallel(listPaths(), settings.parallelism, ([file, path]) =>
    add(file, path, async () => {
      const items = await objects.list(path);
      if (file.endsWith("/pods.json")) pods.push(...podsIn(items));
      return json(items.map(withoutManagedFields));
    }),
  );
  await addFlows({ objects, settings, add });
  const chosen = choosePods(pods, settings);
  await inParallel(chosen, settings.parallelism, (pod) => addLogs(pod, { objects, settings, add }));
  const left = pods.filter(({ isOurs }) => isOurs).length - chosen.length;
  if (left > 0)
    missing.push({ what: `logs of ${counted(left, "pod")}`, reason: "more than --max-logs of their workload" });
  return { files: files.toSorted((left, right) => (left.path < right.path ? -1 : 1)), missing };
}

interface AddingLogs {
  readonly objects: ClusterObjects;
  readonly settings: Settings;
  readonly add: (path: string, what: string, read: () => Promise<string>) => Promise<void>;
}

async function addLogs(
  { namespace, name, containers }: DiagnosedPod,
  { objects, settings, add }: AddingLogs,
): Promise<void> {
  const since = settings.sinceSeconds === undefined ? {} : { sinceSeconds: String(settings.sinceSeconds) };
  for (const { name: container, hasRestarted } of containers) {
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/log`;
    const read = async (more: Readonly<Record<string, string>>) =>
      (await objects.readText(path, { container, timestamps: "true", ...since, ...more })) ?? "";
    await add(`${namespace}/logs/${name}/${container}.log`, `log of ${namespace}/${name} ${container}`, () => read({}));
    if (!hasRestarted) continue;
    const before = `log of ${namespace}/${name} ${container} before its restart`;
    await add(`${namespace}/logs/${name}/${container}.previous.log`, before, () => read({ previous: "true" }));
  }
}

/** What is missing in the flows of each node; the last ones of no flows. */
async function addFlows({ objects, settings: { flowsSince }, add }: AddingLogs): Promise<void> {
  const { group, version } = FLOWS_API;
  const service = `${version}.${group}`;
  let isServed = false;
  await add("flows/api.json", `APIService ${service}`, async () => {
    const about = await objects.read(`/apis/apiregistration.k8s.io/v1/apiservices/${service}`);
    if (about === undefined) throw new Error("there is none: flows are off");
    isServed = true;
    return json(withoutManagedFields(about));
  });
  if (!isServed) return;
  const read = async (query: Readonly<Record<string, string>>) =>
    (await objects.readText(`/apis/${apiVersionOf(FLOWS_API)}/flows`, query)) ?? "";
  await add("flows/losses.jsonl", "losses of flows", () => read({ last: "0" }));
  if (flowsSince !== undefined)
    await add("flows/flows.jsonl", "flows", () => read({ since: String(flowsSince), last: MOST_FLOWS }));
}

function json(value: unknown): string {
  return `${JSON.stringify(value ?? null, undefined, 2)}\n`;
}

function withoutManagedFields(object: Fields): Fields {
  const { metadata } = object;
  if (!isObject(metadata)) return object;
  const { managedFields: _, ...kept } = metadata;
  return { ...object, metadata: kept };
}

/** Does the work for each, at most so many at the same time. */
async function inParallel<Each>(
  all: readonly Each[],
  most: number,
  work: (each: Each) => Promise<void>,
): Promise<void> {
  const queue = all.values();
  const worker = async () => {
    for (const each of queue) await work(each);
  };
  await Promise.all(Array.from({ length: Math.min(most, all.length) }, worker));
}
