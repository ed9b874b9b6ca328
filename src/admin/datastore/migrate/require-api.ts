import type { DatastoreSettings } from "../../../config/datastore-settings.ts";
import { PluginError } from "../../../errors.ts";

export function requireApi({ kind }: DatastoreSettings, action: string): void {
  if (kind === "orchestrator") return;
  throw new PluginError(
    "config-invalid",
    `Cannot ${action} the ${kind} datastore: the data move to the Kubernetes API`,
    { details: "select it with --datastore-type kubernetes" },
  );
}
