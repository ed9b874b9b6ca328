/** The file of an export, which a command gets with `-f`. */

import { reasonOf } from "../../../config/config-files.ts";
import { PluginError } from "../../../errors.ts";
import { quoted } from "../../../quote.ts";
import { decodeExport, type ExportFile } from "../../../upgrade/datastore-migration/export-file.ts";
import { type Given, UsageError } from "../../main/command.ts";
import type { Files, Terminal } from "../../main/context.ts";
import { EXPORT_OPTION } from "./options.ts";

export async function readExport(context: Terminal & Files, given: Given): Promise<ExportFile> {
  const file = given.values.get(EXPORT_OPTION.name);
  if (file === undefined) throw new UsageError('Give the export with "-f FILE"');
  if (file === "-") return decodeExport(await context.readStdin());
  let text: string;
  try {
    text = await context.readFile(file);
  } catch (cause) {
    throw new PluginError("io-failure", `Cannot read the export ${quoted(file)}: ${reasonOf(cause)}`, { cause });
  }
  return decodeExport(text);
}
