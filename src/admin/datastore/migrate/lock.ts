import { setLock } from "../../../upgrade/datastore-migration/migrate.ts";
import { EXIT_OK, type ExitCode, type Given } from "../../main/command.ts";
import type { DatastoreAccess } from "../../main/context.ts";
import { withDatastore } from "../open.ts";

export function run(context: DatastoreAccess, given: Given): Promise<ExitCode> {
  return withDatastore(context, given, async (store): Promise<ExitCode> => {
    const result = await setLock(store, "locked");
    context.stdout(result === "changed" ? "The datastore is locked\n" : "The datastore was locked already\n");
    return EXIT_OK;
  });
}
