import { SimulatedApi } from "../../datastore/simulated-api.ts";
import type { FaultyNetwork } from "../../faults/network.ts";
import { serverRules } from "./server-rules.ts";

/** The orchestrator's API, with all that its server does to objects. */
export function openApi(network: FaultyNetwork): SimulatedApi {
  const view = { object: (path: string) => api.object(path), list: (collection: string) => api.list(collection) };
  const rules = serverRules(() => network.scheduler.date, view);
  const api: SimulatedApi = new SimulatedApi(network, { rules });
  return api;
}
