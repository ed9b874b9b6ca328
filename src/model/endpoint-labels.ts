/** Apart from the endpoint itself, whose schema the plugin does not need to write one. */
import { identity } from "../identity.ts";

/** The labels an endpoint is stored with: its own, and where it belongs. */
export function endpointLabels(
  own: Readonly<Record<string, string>>,
  place: { readonly namespace: string; readonly orchestrator: string },
): Readonly<Record<string, string>> {
  const { labelPrefix } = identity;
  return { ...own, [`${labelPrefix}namespace`]: place.namespace, [`${labelPrefix}orchestrator`]: place.orchestrator };
}
