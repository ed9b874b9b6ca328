/** The options of the commands of an upgrade, and what they mean. */
import type { Datastore } from "../../datastore/datastore.ts";
import { identity } from "../../identity.ts";
import { isDuration, millisecondsOf } from "../../model/duration.ts";
import { SHARE_OF_NODES } from "../../model/installation/spec.ts";
import { quoted } from "../../quote.ts";
import type { DetectionRequest } from "../../upgrade/detect/detection.ts";
import type { UpgradeOptions } from "../../upgrade/engine/options.ts";
import { type Given, UsageError } from "../main/command.ts";
import type { Option } from "../main/option.ts";

export const CONTEXT_OPTION: Option = {
  name: "context",
  value: "NAME",
  summary: "Context of the kubeconfig (default: its current context)",
};

export const DEFAULT_PLAN_FILE = `${identity.product}-upgrade-plan.json`;

const METHODS = ["chart", "operator", "manifest"] as const;
const NETWORKS = ["own", "other", "fabric"] as const;
const DATASTORES = ["kubernetes", "etcd"] as const;
const ON_CONFLICT = ["fail", "mine", "theirs"] as const;

/** For a cluster that does not say it clearly. */
export const DETECTION_OPTIONS: readonly Option[] = [
  { name: "method", value: "METHOD", oneOf: METHODS, summary: "How it was installed, if the cluster is ambiguous" },
  {
    name: "variant",
    value: "VARIANT",
    oneOf: NETWORKS,
    summary: "Which manifest: own networking and policy, policy with another plugin, or policy only with a fabric",
  },
  { name: "datastore", value: "DATASTORE", oneOf: DATASTORES, summary: "Where its resources are, if it is ambiguous" },
  { name: "from-version", value: "VERSION", summary: "The installed version, if images do not name it" },
  { name: "release", value: "NAMESPACE/NAME", summary: "The release of Helm, if there are several of the chart" },
  {
    name: "ignore-group",
    value: "GROUP",
    repeats: true,
    summary: "Do not search this API group for owner references, for example because its API server is broken",
  },
];

export const PLAN_OPTIONS: readonly Option[] = [
  {
    name: "on-conflict",
    value: "CHOICE",
    oneOf: ON_CONFLICT,
    summary:
      "Your edits that the release changes too: stop (fail, default), keep yours (mine), or take the release's (theirs)",
  },
  { name: "chart", value: "CHART", summary: "Path of the chart, or its name in a repository of Helm" },
  { name: "automatic-host-endpoints", summary: "Also migrate to automatic host endpoints" },
  { name: "accept-default-allow", summary: "Accept that hosts without policy become open by that migration" },
  { name: "overwrite-labels", summary: "Replace labels of nodes by those of host endpoints that have other values" },
  {
    name: "reviewed",
    summary: 'Delete the policy "allow-all-upgrade" although host endpoints have no other policy',
  },
  {
    name: "stall-limit",
    value: "DURATION",
    summary: "Stop if a rolling update makes no progress for so long (default 10m)",
  },
  {
    name: "max-unavailable",
    value: "NODES",
    summary:
      "Update so many nodes at once, or such a share of them (default 10% while the datastore is locked, otherwise as the DaemonSet says)",
  },
  {
    name: "node-limit",
    value: "DURATION",
    summary:
      "While the datastore is locked, go on without a node whose update takes longer (default 5m, at most half of --stall-limit)",
  },
  {
    name: "lock-time",
    value: "DURATION",
    summary: "Lock the datastore at least so long, if resources are moved: longer than an ADD takes (default 130s)",
  },
];

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
