/** STATUS: whether an ADD could be served now. */
import { PluginError } from "../../errors.ts";
import { resourceKey, resourcesPrefix } from "../../model/keys.ts";
import { requireReady, WANTED_CLUSTER } from "../cluster.ts";
import { choosePools } from "../pools.ts";
import { decodeNodeLabels, decodePool } from "../records.ts";
import type { Session, Surroundings } from "./session.ts";

export async function status(session: Session, surroundings: Pick<Surroundings, "now" | "uuid">): Promise<void> {
  try {
    await requireAddresses(session, surroundings);
  } catch (failure) {
    if (failure instanceof PluginError && failure.kind !== "not-available") {
      throw new PluginError("not-available", failure.message, { details: failure.details, cause: failure });
    }
    throw failure;
  }
}

/** The pools are chosen as ADD would. Full ones are well: a host full of running containers is healthy. */
async function requireAddresses(
  { config, settings, node, store }: Session,
  { now, uuid }: Pick<Surroundings, "now" | "uuid">,
): Promise<void> {
  const { answers } = await store.read([
    WANTED_CLUSTER,
    { kind: "prefix", prefix: resourcesPrefix("ippools") },
    { kind: "key", key: resourceKey("nodes", { name: node }) },
  ]);
  const [cluster, pools = [], [registered] = []] = answers;
  const whenBare = settings.kind === "embedded" ? "create" : "refuse";
  requireReady(cluster, { whenBare, now: now(), uid: uuid() });

  const { assignIpv4, assignIpv6, ipv4Pools, ipv6Pools } = config.ipam;
  const decoded = pools.map(decodePool);
  const wish = { intendedUse: "Workload", node, labels: registered === undefined ? {} : decodeNodeLabels(registered) };
  if (assignIpv4) choosePools(decoded, { ...wish, family: 4, asked: ipv4Pools });
  if (assignIpv6) choosePools(decoded, { ...wish, family: 6, asked: ipv6Pools });
}
