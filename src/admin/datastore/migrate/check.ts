import { counted } from "../../../counted.ts";
import { checkData } from "../../../upgrade/datastore-migration/migrate.ts";
import { type Command, EXIT_FAILED, EXIT_OK, wantsJson } from "../../main/command.ts";
import { withDatastore } from "../open.ts";
import { EXPORT_OPTION, readExport } from "./read-export.ts";
import { requireApi } from "./require-api.ts";

export const migrateCheck: Command = {
  kind: "command",
  name: "check",
  summary: "Compare the datastore with an export, every address by itself",
  description: [
    "Prints each record that is missing, differs or should not be there; of blocks, each address whose owner differs. Reads only.",
    "The exit code is 1 if there is a difference. Once the datastore is unlocked, pods that start or end are differences.",
  ].join("\n"),
  options: [EXPORT_OPTION],
  needsDatastore: true,
  examples: [{ command: "datastore migrate check --datastore-type kubernetes -f export.jsonl", does: "Compare them" }],
  async run(context, given) {
    const file = await readExport(context, given);
    return withDatastore(context, given, async (store, settings) => {
      requireApi(settings, "compare the export with");
      const differences = await checkData(store, file);
      const summary = `${counted(file.records.length, "record")} compared, ${counted(differences.length, "difference")}`;
      const text = () => `${[...differences, summary].join("\n")}\n`;
      context.stdout(wantsJson(given) ? `${JSON.stringify({ differences }, undefined, 2)}\n` : text());
      return differences.length === 0 ? EXIT_OK : EXIT_FAILED;
    });
  },
};
