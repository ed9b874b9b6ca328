import { counted } from "../../../counted.ts";
import { PluginError } from "../../../errors.ts";
import { encodeExport } from "../../../upgrade/datastore-migration/export-file.ts";
import { exportData } from "../../../upgrade/datastore-migration/migrate.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given } from "../../main/command.ts";
import type { Clock, DatastoreAccess } from "../../main/context.ts";
import { withDatastore } from "../open.ts";

export function run(context: DatastoreAccess & Clock, given: Given): Promise<ExitCode> {
  return withDatastore(context, given, async (store, { kind }) => {
    if (kind !== "etcd") {
      throw new PluginError("config-invalid", `Cannot export the ${kind} datastore: only etcd is migrated`, {
        details: "select it with --datastore-type etcdv3 and --etcd-endpoints",
      });
    }
    const exported = await exportData(store, context.uuid().slice(0, 8));
    if (!exported.ok) {
      const lines = exported.obstacles.map(({ message, remedy }) => `  ${message}\n    ${remedy}\n`);
      context.stderr(`The datastore cannot be exported:\n${lines.join("")}`);
      return EXIT_FAILED;
    }
    const { file, notes } = exported;
    for (const note of notes) context.stderr(`Note: ${note}\n`);
    context.stderr(`${counted(file.records.length, "record")} and ${counted(file.nodes.length, "node")} exported\n`);
    context.stdout(encodeExport(file));
    return EXIT_OK;
  });
}
