/** What the runtime and the config request, decoded and checked. Pure. */
import type { AddCall, CheckCall } from "../../cni/call.ts";
import type { CniResult } from "../../cni/result.ts";
import { requirePrevResult } from "../prev-result.ts";
import { decodePortMappings, type PortMapping } from "./mapping.ts";
import { decodeOptions, type PortmapOptions } from "./options.ts";

export interface PortRequest {
  /** The result of the previous plugins, which this one passes on. */
  readonly result: CniResult;
  readonly options: PortmapOptions;
  readonly mappings: readonly PortMapping[];
}

export function decodeRequest(call: AddCall | CheckCall): PortRequest {
  const result = requirePrevResult(call);
  return { result, options: decodeOptions(call.config), mappings: decodePortMappings(call.config) };
}
