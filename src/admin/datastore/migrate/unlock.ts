import { setLock } from "../../../upgrade/datastore-migration/migrate.ts";
import { type Command, EXIT_OK, type ExitCode } from "../../main/command.ts";
import { withDatastore } from "../open.ts";

export const migrateUnlock: Command = {
  kind: "command",
  name: "unlock",
  summary: "Unlock the datastore",
  description: [
    "Sets datastoreReady of ClusterInformation to true. With the new datastore it is the point of no return: addresses are assigned there",
    "from then on. With etcd it ends a migration that is given up, as long as the new datastore was never unlocked.",
  ].join("\n"),
  needsDatastore: true,
  examples: [
    { command: "datastore migrate unlock --datastore-type kubernetes", does: "End the migration" },
    { command: "datastore migrate unlock --etcd-endpoints http://10.0.0.1:2379", does: "Give it up" },
  ],
  run: (context, given) =>
    withDatastore(context, given, async (store): Promise<ExitCode> => {
      const result = await setLock(store, "unlocked");
      context.stdout(result === "changed" ? "The datastore is unlocked\n" : "The datastore was unlocked already\n");
      return EXIT_OK;
    }),
};
