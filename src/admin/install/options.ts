import { ENCAPSULATIONS, HOST_LOCAL, OWN_TYPE } from "../../model/installation/choices.ts";
import type { Option } from "../main/option.ts";

const SWITCH = ["Enabled", "Disabled"] as const;

export const NETWORK_OPTIONS: readonly Option[] = [
  {
    name: "pod-cidr",
    value: "CIDR",
    repeats: true,
    summary: "Addresses of pods; repeat it for both families (default: the ranges of the cluster)",
  },
  {
    name: "encapsulation",
    value: "MODE",
    oneOf: ENCAPSULATIONS,
    summary: `Tunnels between nodes, for the pools of --pod-cidr: ${ENCAPSULATIONS.join(", ")}`,
  },
  { name: "bgp", value: "STATE", oneOf: SWITCH, summary: "Routes between nodes by BGP: Enabled or Disabled" },
  { name: "mtu", value: "NUMBER", summary: "MTU of pods (default: detected on each node)" },
  { name: "host-ports", value: "STATE", oneOf: SWITCH, summary: "Host ports of pods: Enabled or Disabled" },
  {
    name: "ipam",
    value: "TYPE",
    oneOf: [OWN_TYPE, HOST_LOCAL],
    summary: `Where addresses come from: ${OWN_TYPE} (pools) or ${HOST_LOCAL} (the range of the node)`,
  },
  { name: "registry", value: "REGISTRY", summary: "Registry of the image, for example registry.example.org/" },
  { name: "image-path", value: "PATH", summary: "Path of the image in the registry" },
  {
    name: "image-pull-secret",
    value: "NAME",
    repeats: true,
    summary: "Secret in the operator's namespace to pull the image with; can be repeated",
  },
  {
    name: "datastore",
    value: "TYPE",
    oneOf: ["Kubernetes", "Etcd"],
    summary: "Where the network keeps its resources: Kubernetes (default) or Etcd",
  },
  { name: "etcd-endpoints", value: "URLS", summary: "etcd endpoint URLs, separated by commas" },
  { name: "etcd-discovery-srv", value: "DOMAIN", summary: "Domain whose SRV records list the etcd endpoints" },
  { name: "etcd-secret", value: "NAME", summary: "Secret in the operator's namespace with the certificates of etcd" },
];
