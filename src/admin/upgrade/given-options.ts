/** The options of the commands of an upgrade, and what they mean. */

import type { Datastore } from "../../datastore/datastore.ts";
import { isDuration, millisecondsOf } from "../../model/duration.ts";
import { SHARE_OF_NODES } from "../../model/installation/spec.ts";
import { quoted } from "../../quote.ts";
import type { DetectionRequest } from "../../upgrade/detect/detection.ts";
import type { UpgradeOptions } from "../../upgrade/engine/options.ts";
import { type Given, UsageError } from "../main/command.ts";
import { DATASTORES, METHODS, NETWORKS, ON_CONFLICT } from "./options.ts";

export function upgradeOptions({ switches, values, lists }: Given): UpgradeOptions {
  const lockTime = values.get("lock-time");
  const chart = values.get("chart");
  const maxUnavailable = values.get("max-unavailable");
  const nodeLimit = values.get("node-limit");
  const stallSeconds = secondsOf(values.get("stall-limit") ?? "10m");
  const nodeSeconds = nodeLimit === undefined ? undefined : secondsOf(nodeLimit);
  if (nodeSeconds !== undefined && nodeSeconds >= stallSeconds)
    throw new UsageError(
      "--node-limit has to be shorter than --stall-limit (10m unless it is given): the update would stop before it goes on without a node",
    );
  return {
    automaticHostEndpoints: switches.has("automatic-host-endpoints"),
    acceptDefaultAllow: switches.has("accept-default-allow"),
    overwriteLabels: switches.has("overwrite-labels"),
    reviewed: switches.has("reviewed"),
    onConflict: oneOf(ON_CONFLICT, values.get("on-conflict")) ?? "fail",
    ignoredGroups: lists.get("ignore-group") ?? [],
    ...(chart === undefined ? {} : { chart }),
    stallSeconds,
    ...(maxUnavailable === undefined ? {} : { maxUnavailable: nodesOf(maxUnavailable) }),
    ...(nodeSeconds === undefined ? {} : { nodeSeconds }),
    ...(lockTime === undefined ? {} : { lockSeconds: secondsOf(lockTime) }),
  };
}

function nodesOf(text: string): number | string {
  if (SHARE_OF_NODES.test(text)) return text;
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new UsageError(`${quoted(text)} is not a number or share of nodes; use for example "5" or "10%"`);
}

function secondsOf(duration: string): number {
  if (isDuration(duration)) return millisecondsOf(duration) / 1_000;
  throw new UsageError(`${quoted(duration)} is not a duration; use for example "90s" or "10m"`);
}

/** `openDatastore`: of a cluster that uses etcd. */
export function detectionRequest(
  { values, lists }: Given,
  target: string,
  openDatastore: () => Promise<Datastore>,
): DetectionRequest {
  const method = oneOf(METHODS, values.get("method"));
  const network = oneOf(NETWORKS, values.get("variant"));
  const datastore = oneOf(DATASTORES, values.get("datastore"));
  const version = values.get("from-version");
  const release = values.get("release");
  return {
    target,
    openDatastore,
    ignoredGroups: lists.get("ignore-group") ?? [],
    ...(method === undefined ? {} : { method }),
    ...(network === undefined ? {} : { network }),
    ...(datastore === undefined ? {} : { datastore }),
    ...(version === undefined ? {} : { version }),
    ...(release === undefined ? {} : { release }),
  };
}

/** The parser of arguments accepts no other. */
function oneOf<Value extends string>(allowed: readonly Value[], given: string | undefined): Value | undefined {
  return allowed.find((value) => value === given);
}
