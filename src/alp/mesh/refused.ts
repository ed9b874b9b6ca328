import { PluginError } from "../../errors.ts";

export function refused(reason: string): PluginError {
  return new PluginError(
    "resource-invalid",
    `Cannot insert the sidecar into the configuration of the injector: ${reason}`,
  );
}
