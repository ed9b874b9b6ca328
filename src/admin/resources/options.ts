/** The options that commands on resources share. */
import type { Option } from "../main/option.ts";

export const USUAL_NAMESPACE = "default";

export const NAMESPACE_OPTION: Option = {
  name: "namespace",
  letter: "n",
  value: "NAMESPACE",
  summary: `Namespace of namespaced resources (default: ${USUAL_NAMESPACE})`,
};

export const DRY_RUN_OPTION: Option = {
  name: "dry-run",
  value: "WHERE",
  oneOf: ["none", "client", "server"],
  valueIfBare: "server",
  summary:
    "Check against the datastore and print what would be done, but write nothing; client and server mean the same",
};

export const SELECTOR_OPTION: Option = {
  name: "selector",
  letter: "l",
  value: "SELECTOR",
  summary: "Only resources whose labels match: rack=a,disk!=ssd as in kubectl, or a selector such as rack == 'a'",
};

export const ALL_NAMESPACES_OPTION: Option = {
  name: "all-namespaces",
  letter: "A",
  summary: "The resources of all namespaces",
};

/** What completion offers for a kind: the table of kinds has more, and is loaded only by commands that run. */
export const KIND_WORDS: readonly string[] = [
  "ippool",
  "ipreservation",
  "ipaddresslist",
  "ipamconfiguration",
  "clusterinformation",
  "node",
  "profile",
  "workloadendpoint",
  "containerlabels",
  "networkpolicy",
  "globalnetworkpolicy",
  "stagednetworkpolicy",
  "stagedglobalnetworkpolicy",
  "stagedkubernetesnetworkpolicy",
  "networkset",
  "globalnetworkset",
  "tier",
  "hostendpoint",
  "nodeagentconfiguration",
  "kubecontrollersconfiguration",
  "bgpconfiguration",
  "bgppeer",
  "bgpfilter",
];
