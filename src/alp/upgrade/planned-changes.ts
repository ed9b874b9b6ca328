/** What the plan says about injectors and filters. Pure. */

import { FORMER_SIDECAR } from "../../identity.ts";
import type { Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import { unifiedDiff } from "../../unified-diff.ts";
import type { Obstacle } from "../../upgrade/engine/facts.ts";
import type { PlannedChange } from "../../upgrade/engine/step.ts";
import { listed } from "../../upgrade/engine/wording.ts";
import type { FilterForm } from "../mesh/envoy-filter.ts";
import { replacementsOf } from "./former-filters.ts";
import type { Injector } from "./injectors.ts";
import { titleOf } from "./outdated-workloads.ts";
import type { Mesh } from "./read-mesh.ts";

export function formOf(injectors: readonly Injector[]): FilterForm {
  return injectors.flatMap(({ wanted }) => ("problem" in wanted ? [] : wanted.filter))[0] ?? "v3";
}

/** A proxy beside a former sidecar could ask nobody else; without an injector there is nobody to ask instead. */
export function keepsFilters({ injectors, outdated }: Mesh): boolean {
  return injectors.length === 0 || outdated.others.some(({ workload }) => workload.hasEarlierSidecar);
}

export function filterChanges(mesh: Mesh): readonly PlannedChange[] {
  const { injectors, filters } = mesh;
  if (keepsFilters(mesh)) return [];
  return [
    ...replacementsOf(filters, formOf(injectors)).map(({ object }) => ({
      action: "create" as const,
      what: `EnvoyFilter ${titleIn(object)}`,
    })),
    ...filters.map(({ title }) => ({ action: "delete" as const, what: title })),
  ];
}

function titleIn({ metadata }: Fields): string {
  const { namespace, name } = isObject(metadata) ? metadata : {};
  return `${String(namespace)}/${String(name)}`;
}

export function filterNotes(mesh: Mesh): readonly string[] {
  const { filters } = mesh;
  if (filters.length === 0) return [];
  const titles = listed(filters.map(({ title }) => title));
  return keepsFilters(mesh)
    ? [`${titles}: stays until the former sidecars are gone, or an injector inserts new ones; then plan again`]
    : [`${titles}: asks new sidecars too, until no former one is left and it is replaced`];
}

/** They are served as before; what differs from a sidecar of this release is for the reader to weigh. */
export function formerSidecarNotes({ outdated: { restarted, others } }: Mesh): readonly string[] {
  const workloads = [...restarted, ...others.map(({ workload }) => workload)].filter((each) => each.hasEarlierSidecar);
  if (workloads.length === 0) return [];
  return [
    `${listed(workloads.map(titleOf))}: until their pods are restarted, the container ${FORMER_SIDECAR} decides about requests, with the policies that the node agents of this release send it; it compares paths as the client has written them`,
  ];
}

export function isChanged({ config, wanted }: Injector): boolean {
  return !("problem" in wanted) && wanted.config !== config;
}

export function templateNotes(injectors: readonly Injector[]): readonly string[] {
  return injectors.flatMap(({ title, wanted }) =>
    "problem" in wanted || wanted.note === undefined ? [] : [`${title}: ${wanted.note}`],
  );
}

export function changeOf({ path, title, config, wanted }: Injector): PlannedChange {
  const diff = "problem" in wanted ? "" : unifiedDiff(config, wanted.config, { before: "present", after: "planned" });
  return { action: "update", what: title, path, diff };
}

export function obstacleOf({ title, wanted }: Injector): readonly Obstacle[] {
  if (!("problem" in wanted)) return [];
  const { message, details } = wanted.problem;
  return [
    {
      message: `${title}: ${message}`,
      remedy:
        details ||
        "use a version of the mesh whose injector has the expected form, or take the sidecar out of its injector",
    },
  ];
}
