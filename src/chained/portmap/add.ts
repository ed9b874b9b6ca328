/** ADD: checks the request, and maps ports if there are any. Most containers request none and load nothing more. */
import type { AddCall } from "../../cni/call.ts";
import type { CniResult } from "../../cni/result.ts";
import { loadOnce } from "../../load-once.ts";
import { decodeRequest } from "./request.ts";
import type { Surroundings } from "./surroundings.ts";

const loadMapping = loadOnce(() => import("./map-ports.ts"));

export async function add(call: AddCall, surroundings: Surroundings): Promise<CniResult> {
  const request = decodeRequest(call);
  if (request.mappings.length > 0) {
    const { mapPorts } = await loadMapping();
    await mapPorts(call, request, surroundings);
  }
  return request.result;
}
