import { counted } from "../../../counted.ts";
import { checkData } from "../../../upgrade/datastore-migration/migrate.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, wantsJson } from "../../main/command.ts";
import type { DatastoreAccess } from "../../main/context.ts";
import { withDatastore } from "../open.ts";
import { readExport } from "./read-export.ts";
import { requireApi } from "./require-api.ts";

export async function run(context: DatastoreAccess, given: Given): Promise<ExitCode> {
  const file = await readExport(context, given);
  return withDatastore(context, given, async (store, settings) => {
    requireApi(settings, "compare the export with");
    const differences = await checkData(store, file);
    const summary = `${counted(file.records.length, "record")} compared, ${counted(differences.length, "difference")}`;
    const text = () => `${[...differences, summary].join("\n")}\n`;
    context.stdout(wantsJson(given) ? `${JSON.stringify({ differences }, undefined, 2)}\n` : text());
    return differences.length === 0 ? EXIT_OK : EXIT_FAILED;
  });
}
