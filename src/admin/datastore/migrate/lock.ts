import { setLock } from "../../../upgrade/datastore-migration/migrate.ts";
import { type Command, EXIT_OK, type ExitCode } from "../../main/command.ts";
import { withDatastore } from "../open.ts";

export const migrateLock: Command = {
  kind: "command",
  name: "lock",
  summary: "Lock the datastore: agents keep their last state, and no address is assigned or released",
  description: [
    "Sets datastoreReady of ClusterInformation to false. Pods that start meanwhile wait: their ADD fails with code 11 and is tried again.",
    "Locking it again changes nothing.",
  ].join("\n"),
  needsDatastore: true,
  examples: [{ command: "datastore migrate lock --etcd-endpoints http://10.0.0.1:2379", does: "Lock etcd" }],
  run: (context, given) =>
    withDatastore(context, given, async (store): Promise<ExitCode> => {
      const result = await setLock(store, "locked");
      context.stdout(result === "changed" ? "The datastore is locked\n" : "The datastore was locked already\n");
      return EXIT_OK;
    }),
};
