/** What the runtime and the config ask for, decoded and checked. Pure. */
import type { AddCall, CheckCall } from "../../cni/call.ts";
import type { CniResult } from "../../cni/result.ts";
import { PluginError } from "../../errors.ts";
import { decodePortMappings, type PortMapping } from "./mapping.ts";
import { decodeOptions, type PortmapOptions } from "./options.ts";

export interface PortRequest {
  /** What the plugins before gave, and what this one passes on. */
  readonly result: CniResult;
  readonly options: PortmapOptions;
  readonly mappings: readonly PortMapping[];
}

export function decodeRequest({ prevResult, config }: AddCall | CheckCall): PortRequest {
  if (prevResult === undefined) {
    const state = "it has no prevResult; this plugin comes behind another one in a list";
    throw new PluginError("config-invalid", `Cannot use the network config: ${state}`);
  }
  return { result: prevResult, options: decodeOptions(config), mappings: decodePortMappings(config) };
}
