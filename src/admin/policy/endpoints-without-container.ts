/**
 * Endpoints of this host whose container is gone: its DEL did not reach the datastore, and the address is not released yet.
 * The missing interface is evidence, on this host alone.
 */

import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { isWithoutLink } from "../../upkeep/orphaned-endpoints.ts";
import type { Clock, HostNetwork } from "../main/context.ts";
import { titleOf } from "./explain/peer.ts";

/** For an ADD in progress, which records the endpoint before it makes the link. */
const RECHECK_MILLISECONDS = 500;

/** None if this host cannot be asked. */
export async function endpointsWithoutContainer(
  context: HostNetwork & Clock,
  endpoints: readonly WorkloadEndpoint[],
  node: string,
): Promise<ReadonlySet<WorkloadEndpoint>> {
  const first = await withoutLink(context, endpoints, node);
  if (first.length === 0) return new Set();
  await context.wait(RECHECK_MILLISECONDS);
  return new Set(await withoutLink(context, first, node));
}

async function withoutLink(
  context: HostNetwork,
  endpoints: readonly WorkloadEndpoint[],
  node: string,
): Promise<readonly WorkloadEndpoint[]> {
  if (!endpoints.some(({ spec }) => spec.node === node)) return [];
  const links = await context.hostLinks().catch(() => undefined);
  if (links === undefined || !links.isHostNamespace) return [];
  return endpoints.filter((endpoint) => isWithoutLink(endpoint, { node, links }));
}

/** Without those whose name another container of this host has now: the name means the one that runs. */
export async function withoutReplaced(
  context: HostNetwork & Clock,
  endpoints: readonly WorkloadEndpoint[],
  node: string,
): Promise<readonly WorkloadEndpoint[]> {
  const own = endpoints.filter(({ spec }) => spec.node === node);
  const several = [...Map.groupBy(own, titleOf).values()].filter((same) => same.length > 1);
  const gone = await endpointsWithoutContainer(context, several.flat(), node);
  const replaced = new Set(several.filter((same) => !same.every((each) => gone.has(each))).flat());
  return endpoints.filter((endpoint) => !gone.has(endpoint) || !replaced.has(endpoint));
}
