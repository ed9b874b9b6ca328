/** Everything that `ipam check` finds: what the records of addresses say of each other, and what endpoints say. */
import type { Datastore } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/read-all.ts";
import { findProblems, type Problem, type World } from "../../ipam/invariants.ts";
import { readWorld } from "../../ipam/world.ts";
import { resourcesPrefix } from "../../model/keys.ts";
import { profile } from "../../model/profile.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { allocationsOf } from "./blocks.ts";
import { type EndpointProblem, findEndpointProblems } from "./endpoint-problems.ts";

export type Finding = Problem | EndpointProblem;

export interface Checked {
  readonly world: World;
  readonly findings: readonly Finding[];
}

export async function checkOnce(store: Datastore, now: Date): Promise<Checked> {
  const world = await readWorld(store);
  const endpoints = await readAllEntries(store, resourcesPrefix("workloadendpoints"));
  const profiles = await readAllEntries(store, resourcesPrefix("profiles"));
  const ofEndpoints = findEndpointProblems({
    endpoints: endpoints.map(({ value, key }) => workloadEndpoint.read(value, key)),
    profiles: profiles.map(({ value, key }) => profile.read(value, key)),
    allocations: world.blocks.flatMap(allocationsOf),
    pools: world.pools,
    now,
  });
  return { world, findings: [...findProblems(world), ...ofEndpoints] };
}

/** Of two looks, what both saw: what only one saw was on its way while the pages were read. */
export function lasting(first: readonly Finding[], second: readonly Finding[]): readonly Finding[] {
  const seen = new Set(first.map(identityOf));
  return second.filter((finding) => seen.has(identityOf(finding)));
}

function identityOf(finding: Finding): string {
  const { kind, message } = finding;
  return `${kind} ${message}`;
}
