import { counted } from "../../../counted.ts";
import { PluginError } from "../../../errors.ts";
import { encodeExport } from "../../../upgrade/datastore-migration/export-file.ts";
import { exportData } from "../../../upgrade/datastore-migration/migrate.ts";
import { type Command, EXIT_FAILED, EXIT_OK } from "../../main/command.ts";
import { withDatastore } from "../open.ts";

export const migrateExport: Command = {
  kind: "command",
  name: "export",
  summary: "Print everything that the Kubernetes API has to contain instead of etcd",
  description: [
    "The datastore must be etcd, and locked. Nodes get the names that they have in Kubernetes, and everything that refers to them.",
    "Left out is what the API has itself: workload endpoints, profiles of namespaces and accounts, copies of its network policies.",
    "What a person should know goes to stderr. docs/datastore-migration.md describes the file.",
  ].join("\n"),
  needsDatastore: true,
  examples: [
    { command: "datastore migrate export --etcd-endpoints http://10.0.0.1:2379 > export.jsonl", does: "Export etcd" },
  ],
  run: (context, given) =>
    withDatastore(context, given, async (store, { kind }) => {
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
    }),
};
