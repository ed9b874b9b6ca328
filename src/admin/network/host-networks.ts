/** The networks in the directory of this host that container runtimes read, and the containers in them. */
import { basename } from "node:path";
import { isJsonObject, type JsonObject } from "../../cni/json.ts";
import { type DatastoreSettings, datastoreSettings } from "../../config/datastore-settings.ts";
import { configInvalid, decodeNetworkConfig } from "../../config/decode.ts";
import { isNetworkFileName, networkConfigDirectory } from "../../config/installed-network.ts";
import { entriesOf, ownEntryOf } from "../../config/own-entry.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { containerOf } from "../../model/container-labels.ts";
import { parseJson } from "../../parse-json.ts";
import { quoted } from "../../quote.ts";
import { readContainerEndpoints } from "../kinds/container-labels.ts";
import type { Call, Cluster, Files } from "../main/context.ts";

export interface HostNetwork {
  readonly file: string;
  readonly name: string;
  readonly list: JsonObject;
  /** Our entry of the list, with the fields that it has from the list; absent if other plugins run it. */
  readonly entry?: JsonObject;
}

/** In the order in which runtimes read them. What is no network config is left out. */
export async function readHostNetworks(context: Call & Files): Promise<readonly HostNetwork[]> {
  const directory = networkConfigDirectory(context);
  const names = ((await context.listFolder(directory)) ?? []).filter(isNetworkFileName);
  const read = await Promise.all(names.map((name) => readNetwork(`${directory}/${name}`, context)));
  return read.filter((each) => each !== undefined);
}

async function readNetwork(file: string, { readFile }: Files): Promise<HostNetwork | undefined> {
  const list = parsed(await readFile(file).catch(() => ""));
  const name = list?.["name"];
  return list === undefined || typeof name !== "string" ? undefined : networkOf({ file, name, list });
}

export function networkOf({ file, name, list }: Omit<HostNetwork, "entry">): HostNetwork {
  const own = entriesOf(list)
    .map(ownEntryOf)
    .find((each) => each !== undefined);
  const { cniVersion } = list;
  return { file, name, list, ...(own === undefined ? {} : { entry: { ...own, name, cniVersion } }) };
}

function parsed(text: string): JsonObject | undefined {
  try {
    const value: unknown = parseJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function networkNamed(name: string, networks: readonly HostNetwork[]): HostNetwork {
  const own = networks.filter(({ entry }) => entry !== undefined);
  const found = own.find((each) => each.name === name);
  if (found !== undefined) return found;
  const other = networks.find((each) => each.name === name);
  if (other !== undefined) {
    const state = `${basename(other.file)} does not run the plugin ${identity.product}`;
    throw new PluginError("resource-missing", `Cannot use network ${quoted(name)}: ${state}`);
  }
  const names = own.map((each) => each.name).join(", ");
  throw new PluginError("resource-missing", `Cannot find network ${quoted(name)} on this host`, {
    details: names === "" ? "there is none" : `networks are: ${names}`,
  });
}

/** The datastore that the network's own entry selects, whatever the environment says: its containers use no other. */
export async function withDatastoreOf<T>(
  { file, entry }: HostNetwork,
  { openDatastore }: Cluster,
  work: (store: Datastore, kind: DatastoreSettings["kind"]) => Promise<T>,
): Promise<T> {
  const decoded = decodeNetworkConfig(entry ?? {});
  if (!decoded.ok) throw configInvalid(decoded.problems);
  const settings = datastoreSettings(decoded.config);
  if (settings.kind === "orchestrator") {
    const state = "an endpoint is a pod there, and Kubernetes starts the containers";
    throw new PluginError(
      "config-invalid",
      `Cannot use network config ${quoted(file)} for containers: its datastore is the Kubernetes API: ${state}`,
    );
  }
  const store = await openDatastore(settings);
  try {
    return await work(store, settings.kind);
  } finally {
    await store.close();
  }
}

/** Their names, or their IDs if their runtime has told none. Of all hosts that share the datastore. */
export async function containersIn(store: Datastore, network: string): Promise<readonly string[]> {
  const endpoints = await readContainerEndpoints(store);
  return endpoints.flatMap((endpoint) => {
    const of = containerOf(endpoint);
    if (of?.network !== network) return [];
    return [of.container ?? endpoint.spec.containerID ?? endpoint.metadata.name];
  });
}
