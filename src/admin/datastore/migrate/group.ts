import type { CommandGroup } from "../../main/command.ts";
import { migrateCheck } from "./check.ts";
import { migrateExport } from "./export.ts";
import { migrateImport } from "./import.ts";
import { migrateLock } from "./lock.ts";
import { migrateUnlock } from "./unlock.ts";

export const MIGRATE_COMMANDS: CommandGroup = {
  kind: "group",
  name: "migrate",
  summary: "Move the data of a cluster from etcd to the Kubernetes API",
  commands: [migrateLock, migrateExport, migrateImport, migrateCheck, migrateUnlock],
};
