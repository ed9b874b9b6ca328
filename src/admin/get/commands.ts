import { loadOnce } from "../../load-once.ts";
import type { Command } from "../main/command.ts";
import { FILE_OPTIONS } from "../manifest/options.ts";
import { ALL_NAMESPACES_OPTION, KIND_WORDS, NAMESPACE_OPTION, SELECTOR_OPTION } from "../resources/options.ts";
import { FORMAT_OPTION, TABLE_OPTIONS } from "./options.ts";

export const getCommand: Command = {
  kind: "command",
  name: "get",
  summary: "Show one or more resources",
  description: [
    "KIND is a singular, plural or short name in any case (ippool, IPPools, ipp …), or several separated by commas.",
    "Without NAME, all resources of the kind are shown. NAME may be NAMESPACE/NAME; a workload endpoint is also named by its",
    "pod or container, or by the beginning of the container ID. container is another name of workloadendpoint. A container in several",
    "networks has an endpoint in each of them: its name shows them all.",
    "yaml and json output includes the resourceVersion and can be applied again.",
    "Unreadable resources are reported on stderr, and the exit code is then 1.",
    "jsonpath templates are those of kubectl, with fields (.a, ['a']), indices ([0], [-1]), slices ([0:2]), [*],",
    'filters ([?(@.a=="b")]), texts ({"\\n"}) and {range .items[*]}…{end}; other expressions are refused.',
    "With -w the resources are printed again when they change, until Ctrl-C (exit code 130).",
  ].join("\n"),
  operands: "KIND [NAME…] | KIND/NAME…",
  completes: KIND_WORDS,
  completesNames: "many",
  options: [
    FORMAT_OPTION,
    ...FILE_OPTIONS,
    SELECTOR_OPTION,
    NAMESPACE_OPTION,
    ALL_NAMESPACES_OPTION,
    ...TABLE_OPTIONS,
    {
      name: "export",
      summary: "Print resources that are requested by name without what the datastore and the namespace add",
    },
    { name: "watch", letter: "w", summary: "Print the resources, then each of them when it changes, until Ctrl-C" },
    { name: "output-watch-events", summary: "With -w, also print whether a resource was ADDED, MODIFIED or DELETED" },
  ],
  needsDatastore: true,
  examples: [
    { command: "get ippools", does: "List all pools" },
    { command: "get pool blue -o yaml", does: "Show a pool as YAML" },
    { command: "get nodes -o wide -l rack=a", does: "List the nodes with a label, with all columns" },
    {
      command: "get nodes -l \"rack in {'a', 'b'}\" --show-labels",
      does: "Select with an expression, and show labels",
    },
    { command: "get wep -A -o name", does: "List the workload endpoints of all namespaces" },
    {
      command: `get pools -o jsonpath='{range .items[*]}{.metadata.name} {.spec.cidr}{"\\n"}{end}'`,
      does: "Print two fields of each pool",
    },
    { command: "get pools -o custom-columns=NAME:.metadata.name,CIDR:.spec.cidr", does: "Print them as a table" },
    { command: "get pools -o custom-columns=NAME,CIDR,NAT", does: "The same, with columns of -o wide" },
    { command: "get pool blue -o yaml --export", does: "Print a pool as it can be created elsewhere" },
    { command: "get containers", does: "List the endpoints of the containers, with their addresses" },
    { command: "get wep web -o yaml", does: "Show the endpoint of a container or pod" },
    { command: "get wep -A -w", does: "Follow the workload endpoints" },
  ],
  load: loadOnce(() => import("./get.ts")),
};

export const describeCommand: Command = {
  kind: "command",
  name: "describe",
  summary: "Show resources in detail, with related information",
  description: [
    "A pool with its usage and blocks, a node with its blocks, a policy with the endpoints that it selects, a workload endpoint with its",
    "addresses and the policies that apply to it in their order, a host endpoint with the policies that apply to it, the profile of a",
    "network with a word if its rules do not count. If the node agent of this host does not run, a note says so.",
  ].join("\n"),
  operands: "KIND [NAME…] | KIND/NAME…",
  completes: KIND_WORDS,
  completesNames: "many",
  options: [...FILE_OPTIONS, SELECTOR_OPTION, NAMESPACE_OPTION, ALL_NAMESPACES_OPTION],
  needsDatastore: true,
  examples: [
    { command: "describe ippool blue", does: "Show a pool, its usage and its blocks" },
    { command: "describe ipaddresslist web", does: "Show a list of addresses, and who has each of them" },
    { command: "describe container web", does: "Show the endpoint of a container" },
    { command: "describe wep web", does: "Show the endpoint of a container or pod" },
    { command: "describe nodes -l rack=a", does: "Show the nodes with a label, and their blocks" },
    { command: "describe networkpolicy db -n shop", does: "Show a policy, and whom it selects" },
  ],
  load: loadOnce(() => import("./describe.ts")),
};

const FORMATS = ["text", "name", "json"] as const;

export const apiResourcesCommand: Command = {
  kind: "command",
  name: "api-resources",
  summary: "List the kinds of resources, with the names that other commands accept",
  options: [
    {
      name: "output",
      letter: "o",
      value: "FORMAT",
      oneOf: FORMATS,
      summary: "Output format: text (default), name or json",
    },
    { name: "no-headers", summary: "Print the table without its header" },
  ],
  examples: [
    { command: "api-resources", does: "List all kinds" },
    { command: "api-resources -o name", does: "List only their names" },
  ],
  load: loadOnce(() => import("./api-resources.ts")),
};
