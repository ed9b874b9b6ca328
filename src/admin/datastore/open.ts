/** Opens the datastore of a command, and closes it when the command is done. */

import { reasonOf, unreadableFiles } from "../../config/config-files.ts";
import type { DatastoreSettings } from "../../config/datastore-settings.ts";
import { findInstalledNetwork } from "../../config/installed-network.ts";
import { type KubeAccess, kubeAccess } from "../../config/kube-access.ts";
import { counted } from "../../counted.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { EtcdFailure } from "../../datastore/etcd/failure.ts";
import { PluginError } from "../../errors.ts";
import { statusAt } from "../../file-status.ts";
import { identity } from "../../identity.ts";
import { containerOfMark } from "../../ipam/link-mark.ts";
import type { KubeClient } from "../../kube/api.ts";
import { quoted } from "../../quote.ts";
import type { Given } from "../main/command.ts";
import type { Call, Cluster, DatastoreAccess, Files, HostNetwork } from "../main/context.ts";
import { LOG_LEVEL_OPTION } from "../main/option.ts";
import { parseDocument } from "../manifest/parse-document.ts";
import { paintStderr } from "../terminal/paint.ts";
import {
  chooseDatastore,
  type DatastoreChoice,
  datastoreOf,
  environmentLayer,
  fileLayer,
  isDatastoreSelected,
  type Layer,
  type OtherNeeds,
  optionLayer,
  withGivenKubeconfig,
  withKubectlDefault,
} from "./choice.ts";
import { refuseGuessedWrites } from "./guessed-store.ts";
import { CONFIG_FILE, DATASTORE_SETTINGS, OTHER_CONFIG_FILE } from "./options.ts";

type Work<T> = (store: Datastore, settings: DatastoreSettings) => Promise<T>;

/** For a command that needs an existing datastore. */
export async function withDatastore<T>(context: DatastoreAccess, given: Given, work: Work<T>): Promise<T> {
  return withExisting(await choiceOf(context, given), context, work);
}

/** The same, for a choice that was made before. */
export async function withExisting<T>(choice: DatastoreChoice, context: DatastoreAccess, work: Work<T>): Promise<T> {
  await requireFile(choice.settings, context);
  return withChosen(choice, context, work);
}

/** For a command that can do without records: `undefined` if the file of an embedded datastore does not exist. */
export async function withDatastoreIfAny<T>(
  context: DatastoreAccess,
  given: Given,
  work: Work<T>,
): Promise<T | undefined> {
  const choice = await choiceOf(context, given);
  const { settings } = choice;
  if (settings.kind === "embedded" && (await isFileAbsent(settings.path))) return undefined;
  return withChosen(choice, context, work);
}

/** Whether it is known not to exist. */
export async function isFileAbsent(path: string): Promise<boolean> {
  return Bun.file(path)
    .stat()
    .then(
      () => false,
      (cause: unknown) => codeOf(cause) === "ENOENT",
    );
}

/** For a command that may be the first to write: creates an embedded datastore if it does not exist. */
export async function withNewDatastore<T>(context: DatastoreAccess, given: Given, work: Work<T>): Promise<T> {
  const choice = await choiceOf(context, given);
  const { settings } = choice;
  if (settings.kind === "embedded" && statusAt(settings.path) === undefined) context.datastoreNotice?.print();
  return withChosen(choice, context, work);
}

/** Opening an embedded datastore creates it, and a misspelt path must not become a new one. */
export async function requireFile(settings: DatastoreSettings, context: Call & Files & HostNetwork): Promise<void> {
  if (settings.kind !== "embedded") return;
  try {
    await Bun.file(settings.path).stat();
  } catch (cause) {
    const { reason, details } = explainAbsence(cause, await containersOfNetwork(context));
    const message = `Cannot open datastore ${quoted(settings.path)}: ${reason}`;
    throw new PluginError("datastore-unavailable", message, { details, cause });
  }
}

/** Only what is known not to exist is to be created: to others the directory may just be closed. */
function explainAbsence(cause: unknown, containers: number): { readonly reason: string; readonly details: string } {
  const code = codeOf(cause);
  if (code === "ENOENT") {
    const creation = `"${identity.adminTool} datastore init" creates it`;
    const details =
      containers === 0 ? creation : `${runningHere(containers)}: put its copy back; ${creation}, but empty`;
    return { reason: "the file does not exist", details };
  }
  const details = code === "EACCES" ? "run it as root" : "check the path";
  return { reason: reasonOf(cause), details };
}

/** "3 containers run here" */
export function runningHere(containers: number): string {
  return `${counted(containers, "container runs", "containers run")} here`;
}

/** How many containers of the installed network this host has, as its links show. */
export async function containersOfNetwork(context: Call & Files & HostNetwork): Promise<number> {
  try {
    const network = (await findInstalledNetwork(context))?.decoded.config.name;
    if (network === undefined) return 0;
    const { marks } = await context.hostLinks();
    return new Set([...marks].flatMap((mark) => containerOfMark(network, mark) ?? [])).size;
  } catch {
    // Only for a hint.
    return 0;
  }
}

function codeOf(cause: unknown): unknown {
  return cause instanceof Error && "code" in cause ? cause.code : undefined;
}

/** For a command that uses the orchestrator's API too, whatever the datastore is. */
export async function withDatastoreAndApi<T>(
  context: DatastoreAccess,
  given: Given,
  work: (store: Datastore, client: KubeClient, settings: DatastoreSettings) => Promise<T>,
): Promise<T> {
  const choice = await choiceOf(context, given, { api: true });
  if (choice.settings.kind === "embedded") {
    throw new PluginError(
      "config-invalid",
      "Cannot use the embedded datastore, which is of one host: there is no cluster",
      {
        details: "select the datastore of the cluster with --datastore-type etcdv3 or kubernetes",
      },
    );
  }
  const access = await accessTo(choice, context);
  return withChosen(choice, context, async (store, settings) => {
    const client = await context.openKubeClient(access);
    try {
      return await work(store, client, settings);
    } finally {
      await client.close();
    }
  });
}

/** For a command that can use the orchestrator's API too: `openApi()` is `undefined` if no access to it is configured. */
export async function withDatastoreAndMaybeApi<T>(
  context: DatastoreAccess,
  given: Given,
  work: (store: Datastore, settings: DatastoreSettings, openApi: () => Promise<KubeClient | undefined>) => Promise<T>,
): Promise<T> {
  const choice = await choiceOf(context, given, { api: true });
  await requireFile(choice.settings, context);
  let client: KubeClient | undefined;
  const openApi = async () => {
    const access = client === undefined ? await accessIfConfigured(choice, context) : undefined;
    if (access !== undefined) client = await context.openKubeClient(access);
    return client;
  };
  try {
    return await withChosen(choice, context, (store, settings) => work(store, settings, openApi));
  } finally {
    await client?.close();
  }
}

/** That of the datastore, a given kubeconfig, that of the installed network config, or the account of the pod. */
async function accessIfConfigured(
  { settings, givenAccess }: DatastoreChoice,
  context: Call & Files,
): Promise<KubeAccess | undefined> {
  if (settings.kind === "embedded") return undefined;
  if (settings.kind === "orchestrator") return settings.access;
  if (givenAccess?.kubeconfigs !== undefined || givenAccess?.apiRoot !== undefined) return givenAccess;
  const installed = await findInstalledNetwork(context);
  const configured = installed && kubeAccess(installed.decoded.config);
  if (configured !== undefined) return configured;
  return context.env["KUBERNETES_SERVICE_HOST"] ? {} : undefined;
}

async function accessTo(choice: DatastoreChoice, context: Call & Files): Promise<KubeAccess> {
  const access = await accessIfConfigured(choice, context);
  if (access !== undefined) return access;
  throw new PluginError("config-invalid", "Cannot reach the Kubernetes API: no access to it is configured", {
    details: "name a kubeconfig with --kubeconfig or KUBECONFIG",
  });
}

async function withChosen<T>(choice: DatastoreChoice, context: Cluster, work: Work<T>): Promise<T> {
  const problems = await unreadableFiles(choice.files);
  if (problems.length > 0) {
    const messages = problems.map(({ message }) => message).join("; ");
    throw new PluginError("config-invalid", `Cannot open the datastore: ${messages}`);
  }
  try {
    const opened = await context.openDatastore(choice.settings);
    try {
      const place = choice.isDefault ? endpointsOf(choice.settings) : undefined;
      const onWrite = () => context.datastoreNotice?.print();
      const store = place === undefined ? opened : refuseGuessedWrites(opened, { place, onWrite });
      return await work(store, choice.settings);
    } finally {
      await opened.close();
    }
  } catch (failure) {
    const explained = explainDefault(failure, choice);
    // It says itself that nothing selects this datastore.
    if (explained !== failure) context.datastoreNotice?.keep("");
    throw explained;
  }
}

/** `undefined`: it is not etcd. */
function endpointsOf(settings: DatastoreSettings): string | undefined {
  if (settings.kind !== "etcd") return undefined;
  return settings.source.kind === "endpoints" ? settings.source.endpoints.join(",") : settings.source.domain;
}

/** Without any setting, the failure is usually not that of etcd: the user expected another datastore. */
export function explainDefault(failure: unknown, { isDefault }: DatastoreChoice): unknown {
  if (!isDefault || !(failure instanceof PluginError) || !(failure.cause instanceof EtcdFailure)) return failure;
  if (failure.cause.diagnosis.stage !== "connect") return failure;
  const details = `no datastore is configured, so the default etcd endpoint was tried; set ${TYPE_VARIABLE}=embedded to use the embedded datastore, or ${ENDPOINTS_VARIABLE} to use another etcd`;
  return new PluginError(failure.kind, failure.message, { details, cause: failure.cause });
}

const TYPE_VARIABLE = variableOf("datastore_type");
const ENDPOINTS_VARIABLE = variableOf("etcd_endpoints");

function variableOf(wire: string): string {
  return DATASTORE_SETTINGS.find((setting) => setting.wire === wire)?.variable ?? wire;
}

export async function choiceOf(
  context: DatastoreAccess,
  given: Given,
  needs: OtherNeeds = {},
): Promise<DatastoreChoice> {
  const layers = [optionLayer(given), environmentLayer(context.env), await layerOfFile(context, given)];
  const installed = isDatastoreSelected(layers) ? undefined : await findInstalledNetwork(context);
  if (installed === undefined) {
    const choice = withKubectlDefault(chooseDatastore(layers, needs), context.env);
    for (const note of choice.notes ?? []) context.stderr(`${paintStderr(context).yellow("note:")} ${note}\n`);
    const place = choice.isDefault ? endpointsOf(choice.settings) : undefined;
    if (place !== undefined) {
      announce(`Using etcd at "${place}", which is the default: nothing selects another datastore`, context, given);
    }
    return choice;
  }

  const { choice, source } = withGivenKubeconfig(datastoreOf(installed.decoded), layers, needs);
  const credentials = source === undefined ? "" : ` with the kubeconfig of ${source}`;
  const notice = `Using the ${choice.settings.kind} datastore of network config "${installed.file}"${credentials}`;
  announce(notice, context, given);
  return choice;
}

function announce(notice: string, context: Cluster, given: Given): void {
  context.datastoreNotice?.keep(notice);
  if (given.values.get(LOG_LEVEL_OPTION.name) === "debug") context.datastoreNotice?.print();
}

/** The default file may be missing; one named with `--config` may not. */
async function layerOfFile(context: Files, given: Given): Promise<Layer> {
  const named = given.values.get("config");
  const files = named === undefined ? [CONFIG_FILE, OTHER_CONFIG_FILE] : [named];
  for (const file of files) {
    const text = await readSettings(context, file, named === undefined ? "optional" : "required");
    if (text !== undefined) return fileLayer(parseSettings(text, file), file);
  }
  return fileLayer(null, CONFIG_FILE);
}

async function readSettings(context: Files, file: string, need: "optional" | "required"): Promise<string | undefined> {
  try {
    return await context.readFile(file);
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    if (need === "optional" && code === "ENOENT") return undefined;
    throw new PluginError("io-failure", `Cannot read settings from ${quoted(file)}: ${reasonOf(cause)}`, { cause });
  }
}

function parseSettings(text: string, file: string): unknown {
  const parsed = parseDocument({ text, line: 1 });
  if (parsed.ok) return parsed.value;
  throw new PluginError("decode-failure", `Cannot read settings from ${quoted(file)}: ${parsed.problems.join("; ")}`);
}
