/**
 * STATUS: whether an ADD could succeed now. A locked datastore counts as ready: ADD says "try again later" meanwhile, and
 * a runtime that learned that the network is not ready would take the node, and the pods on it, out of service.
 */
import { PluginError } from "../../errors.ts";
import { resourceKey, resourcesPrefix } from "../../model/keys.ts";
import { DatastoreLocked, readyForAssigning, WANTED_CLUSTER } from "../cluster.ts";
import { requireOwnNode } from "../node-machine.ts";
import { choosePools, type PoolCriteria } from "../pools.ts";
import { decodeNode, decodePools } from "../records.ts";
import { type Session, thisMachine } from "../session.ts";

export async function status(session: Session): Promise<void> {
  try {
    await requireAddresses(session);
  } catch (failure) {
    if (failure instanceof DatastoreLocked) return;
    if (failure instanceof PluginError && failure.kind !== "not-available") {
      throw new PluginError("not-available", failure.message, { details: failure.details, cause: failure });
    }
    throw failure;
  }
}

/** Chooses the pools as ADD does. Full pools are not an error: a host full of running containers is healthy. */
async function requireAddresses(session: Session): Promise<void> {
  const { config, node } = session;
  const { answers } = await (await session.store()).read([
    WANTED_CLUSTER,
    { kind: "prefix", prefix: resourcesPrefix("ippools") },
    { kind: "key", key: resourceKey("nodes", { name: node }) },
  ]);
  const [cluster, pools = [], [registered] = []] = answers;
  readyForAssigning(cluster, session);
  if (registered !== undefined) requireOwnNode(decodeNode(registered), thisMachine(session));

  const { assignIpv4, assignIpv6, ipv4Pools, ipv6Pools } = config.ipam;
  const { pools: decoded, unreadable } = decodePools(pools);
  const addressRequest: Omit<PoolCriteria, "family"> = {
    unreadable,
    intendedUse: "Workload",
    node,
    namespace: "any",
    labels: registered === undefined ? {} : decodeNode(registered).labels,
  };
  if (assignIpv4) choosePools(decoded, { ...addressRequest, family: 4, asked: ipv4Pools });
  if (assignIpv6) choosePools(decoded, { ...addressRequest, family: 6, asked: ipv6Pools });
}
