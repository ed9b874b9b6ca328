/**
 * Takes the sidecar out of the configuration of the mesh's injector again: the inverse of `insertSidecar()`. A configuration without
 * it stays as it is. Pure.
 */
import { withoutMarked } from "./one-template.ts";
import { withoutOwnTemplate } from "./several-templates.ts";
import { EXCLUDED_PORTS, EXCLUDED_PORTS_AND_OURS } from "./template-parts.ts";

export function removeSidecar(config: string): string {
  const lines = withoutMarked(withoutOwnTemplate(config.split("\n")));
  return lines.join("\n").replaceAll(EXCLUDED_PORTS_AND_OURS, EXCLUDED_PORTS);
}
