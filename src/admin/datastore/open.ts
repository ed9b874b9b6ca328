/** The datastore of a command: chosen, opened, and closed when the command is done. */
import { reasonOf, unreadableFiles } from "../../config/config-files.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import type { Context, Given } from "../command.ts";
import {
  chooseDatastore,
  type DatastoreChoice,
  environmentLayer,
  fileLayer,
  type Layer,
  optionLayer,
} from "./choice.ts";
import { CONFIG_FILE } from "./options.ts";

export async function withDatastore<T>(
  context: Context,
  given: Given,
  work: (store: Datastore) => Promise<T>,
): Promise<T> {
  const choice = await choiceOf(context, given);
  const problems = await unreadableFiles(choice.files);
  if (problems.length > 0) {
    const messages = problems.map(({ message }) => message).join("; ");
    throw new PluginError("config-invalid", `Cannot open the datastore: ${messages}`);
  }
  const store = await context.openDatastore(choice.settings);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

export async function choiceOf(context: Context, given: Given): Promise<DatastoreChoice> {
  return chooseDatastore([optionLayer(given), environmentLayer(context.env), await layerOfFile(context, given)]);
}

/** The usual file may be missing; one that was named may not. */
async function layerOfFile(context: Context, given: Given): Promise<Layer> {
  const named = given.values.get("config");
  const file = named ?? CONFIG_FILE;
  let text: string;
  try {
    text = await context.readFile(file);
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    if (named === undefined && code === "ENOENT") return fileLayer(null, file);
    throw new PluginError("io-failure", `Cannot read settings from "${file}": ${reasonOf(cause)}`, { cause });
  }
  return fileLayer(parseSettings(text, file), file);
}

function parseSettings(text: string, file: string): unknown {
  try {
    return Bun.YAML.parse(text);
  } catch (cause) {
    throw new PluginError("decode-failure", `Cannot read settings from "${file}": it is not YAML`, { cause });
  }
}
