/**
 * What was applied last has the changes that the user had made in the file before: where users change manifests, a value of it that
 * the release does not have may be such a change. Pure.
 */
import type { Versions } from "../../merge/three-way.ts";
import { CARRIED_POD_FIELDS } from "./carried-places.ts";

const POD = String.raw`spec\.template\.spec\.`;
const CONTAINER = String.raw`${POD}(?:c|initC)ontainers\[[^\]]*\]`;

/** Present or removed, it may be the user's choice: the release works with both. */
const CHOICES = new RegExp(
  String.raw`^(?:data|spec\.(?:replicas|updateStrategy|strategy)|${POD}(?:${CARRIED_POD_FIELDS.join("|")})|${CONTAINER}\.resources)(?![A-Za-z])`,
);
/** What the user may have added; what the release adds there is needed. */
const ADDITIONS = new RegExp(
  String.raw`^(?:(?:spec\.template\.)?metadata\.(?:labels|annotations)|${POD}(?:containers|initContainers|volumes|securityContext))(?![A-Za-z])`,
);
/** It means something to the program of one release only. */
const OF_PROGRAM = new RegExp(
  String.raw`^${CONTAINER}\.(?:command|args|image|ports|livenessProbe|readinessProbe|startupProbe|lifecycle)(?![A-Za-z])`,
);

export function isPossibleEdit(path: string, { live }: Versions): boolean {
  if (CHOICES.test(path)) return true;
  return live !== undefined && ADDITIONS.test(path) && !OF_PROGRAM.test(path);
}
