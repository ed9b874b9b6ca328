import { loadOnce } from "../../../load-once.ts";
import type { Command, CommandGroup } from "../../main/command.ts";
import { EXPORT_OPTION } from "./options.ts";

const migrateLock: Command = {
  kind: "command",
  name: "lock",
  summary: "Lock the datastore: agents keep their last state, and no address is assigned or released",
  description: [
    "Sets datastoreReady of ClusterInformation to false. Pods that start meanwhile wait: their ADD fails with code 11 and is tried again.",
    "Locking it again changes nothing.",
  ].join("\n"),
  needsDatastore: true,
  examples: [{ command: "datastore migrate lock --etcd-endpoints http://10.0.0.1:2379", does: "Lock etcd" }],
  load: loadOnce(() => import("./lock.ts")),
};

const migrateExport: Command = {
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
  load: loadOnce(() => import("./export.ts")),
};

const migrateImport: Command = {
  kind: "command",
  name: "import",
  summary: "Write an export to the Kubernetes API, which stays locked",
  description: [
    "Applies the custom resource definitions, writes the records, and compares them. If it is interrupted, the same call goes on where it",
    "was; once it is done, the same call writes nothing. Refused if the datastore has other data, or is unlocked already.",
  ].join("\n"),
  options: [EXPORT_OPTION],
  needsDatastore: true,
  versionCheck: "none",
  examples: [{ command: "datastore migrate import --datastore-type kubernetes -f export.jsonl", does: "Import it" }],
  load: loadOnce(() => import("./import.ts")),
};

const migrateCheck: Command = {
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
  load: loadOnce(() => import("./check.ts")),
};

const migrateUnlock: Command = {
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
  load: loadOnce(() => import("./unlock.ts")),
};

export const MIGRATE_COMMANDS: CommandGroup = {
  kind: "group",
  name: "migrate",
  summary: "Move the data of a cluster from etcd to the Kubernetes API",
  commands: [migrateLock, migrateExport, migrateImport, migrateCheck, migrateUnlock],
};
