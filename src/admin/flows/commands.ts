import { identity } from "../../identity.ts";
import { loadOnce } from "../../load-once.ts";
import type { Command } from "../main/command.ts";
import { DEFAULT_COUNT, DEFAULT_TIME, WHICH_OPTIONS, WHO_OPTIONS } from "./options.ts";

const GROUPINGS = ["pair", "source", "destination", "port", "rule"] as const;

const flowsTop: Command = {
  kind: "command",
  name: "top",
  summary: "Show who talks most, and which rules decide most",
  description: [
    "Sums flows of whole minutes. FLOWS counts connections that began, or denied packets; PACKETS and BYTES are those of both directions. What",
    "two nodes have seen of the same connections counts once.",
  ].join("\n"),
  options: [
    {
      name: "by",
      value: "WHAT",
      oneOf: GROUPINGS,
      summary: "pair (default: source, destination and port), source, destination, port or rule",
    },
    { name: "sort", value: "BY", oneOf: ["flows", "packets", "bytes"], summary: "flows (default), packets or bytes" },
    { name: "last", value: "N", summary: `How many rows (default ${DEFAULT_COUNT}; 0: all)` },
    ...WHICH_OPTIONS.map(withDefaultTime),
    ...WHO_OPTIONS,
  ],
  versionCheck: "none",
  examples: [
    { command: "flows top", does: "Who talks to whom?" },
    { command: "flows top --verdict denied --by rule --since 24h", does: "Which rules deny most?" },
    { command: "flows top --by source --sort bytes --to outside", does: "Who sends most to the outside?" },
  ],
  load: loadOnce(() => import("./top.ts")),
};

const flowsGraph: Command = {
  kind: "command",
  name: "graph",
  summary: "Draw who talks to whom, as text, DOT or SVG",
  description: [
    "Nodes are what keeps pods running (Deployment, DaemonSet …), containers, hosts, network sets and the outside, by namespace. Edges have the",
    "port, the verdict and the number of connections. dot is for Graphviz; svg is a picture that needs no other program.",
  ].join("\n"),
  options: [
    {
      name: "output",
      letter: "o",
      value: "FORMAT",
      oneOf: ["text", "dot", "svg", "json"],
      summary: "text (default), dot, svg or json",
    },
    ...WHICH_OPTIONS.map(withDefaultTime),
    ...WHO_OPTIONS,
  ],
  versionCheck: "none",
  examples: [
    { command: "flows graph -n shop", does: "Who talks to whom in a namespace, and with it?" },
    { command: "flows graph --since 24h -o svg > flows.svg", does: "A picture of the last day" },
  ],
  load: loadOnce(() => import("./graph/graph.ts")),
};

const flowsExplain: Command = {
  kind: "command",
  name: "explain",
  summary: "Explain why a flow was allowed or denied, with the policies as they were",
  description: [
    'Evaluates the policies, labels and network sets of the moment in which the flow began, as "policy explain" does for those of now. Says what',
    "is not known any more.",
  ].join("\n"),
  operands: "ID",
  options: [
    {
      name: "namespace",
      letter: "n",
      value: "NAMESPACE",
      summary: "For users who may read the flows of this namespace alone",
    },
    ...WHO_OPTIONS,
  ],
  versionCheck: "none",
  examples: [
    { command: "flows explain 7a1c09e2b45d8f3361ca", does: 'The ID is in the output of "flows"' },
    {
      command: `flows explain "$(${identity.adminTool} flows --verdict denied --last 1 -o jsonpath={.id})"`,
      does: "Why was the last one denied?",
    },
  ],
  load: loadOnce(() => import("./explain.ts")),
};

export const flowsCommand: Command = {
  kind: "command",
  name: "flows",
  summary: "Show who talks to whom, and which rule decided",
  description: [
    `Shows the last ${DEFAULT_COUNT} flows: connections of pods, containers and hosts, and denied packets. On a node with an agent, root sees the flows of`,
    "this node; with a kubeconfig those of the whole cluster, as far as the user may list the pods at either end.",
    "BY is what decided: shop/db ingress[0] is the first ingress rule of NetworkPolicy shop/db. -o wide also shows what each point on the way",
    "decided, translated addresses, nodes, times and IDs. -o json prints one JSON object per line.",
    "Flows are recorded if they are enabled in the settings of the node agents. What is missing in the answer is said on stderr.",
  ].join("\n"),
  options: [
    { name: "follow", letter: "f", summary: "Go on until Ctrl-C; a flow is shown when it begins and when it ends" },
    { name: "last", value: "N", summary: `The last N flows (default ${DEFAULT_COUNT}; with --since: all)` },
    ...WHICH_OPTIONS,
    {
      name: "output",
      letter: "o",
      value: "FORMAT",
      oneOf: ["table", "wide", "json"],
      withArgument: ["jsonpath"],
      summary: "table (default), wide, json (one object per line) or jsonpath=TEMPLATE (of each flow)",
    },
    ...WHO_OPTIONS,
  ],
  commands: [flowsTop, flowsGraph, flowsExplain],
  versionCheck: "none",
  examples: [
    { command: "flows", does: "What happened last?" },
    { command: "flows -f --verdict denied", does: "Watch what policy denies" },
    { command: "flows --to shop/db --port 5432 --since 10m", does: "Who asked the database?" },
    { command: "flows --policy shop/db --verdict denied -o wide", does: "Whom does a policy deny?" },
    { command: "flows --last 1000 -o json", does: "One JSON object per line for a script" },
  ],
  load: loadOnce(() => import("./show-flows.ts")),
};

/** Sums are over all flows of a time. */
function withDefaultTime(option: (typeof WHICH_OPTIONS)[number]): (typeof WHICH_OPTIONS)[number] {
  return option.name === "since" ? { ...option, summary: `${option.summary} (default ${DEFAULT_TIME})` } : option;
}
