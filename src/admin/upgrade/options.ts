import { identity } from "../../identity.ts";
import { UPGRADE_MARK } from "../../upgrade/former-names.ts";
import type { Option } from "../main/option.ts";

export const HELM_OPTION: Option = {
  name: "helm",
  value: "FILE",
  summary: "Path of the program Helm (default: helm in PATH); only charts need it",
};

export const CONTEXT_OPTION: Option = {
  name: "context",
  value: "NAME",
  summary: "Context of the kubeconfig (default: its current context)",
};

export const DEFAULT_PLAN_FILE = `${identity.product}-upgrade-plan.json`;

export const METHODS = ["chart", "operator", "manifest"] as const;

export const NETWORKS = ["own", "other", "fabric"] as const;

export const DATASTORES = ["kubernetes", "etcd"] as const;

export const ON_CONFLICT = ["fail", "mine", "theirs"] as const;

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

/** The hosts that the upgrade has labelled. */
export const MARKED = `has(${UPGRADE_MARK})`;
