/** Options that the commands about flows share: which flows, and who is asked for them. */
import type { Option } from "../main/option.ts";

export const DEFAULT_COUNT = 20;
export const DEFAULT_TIME = "1h";

/** What `--from` and `--to` accept. */
const END = "NAMESPACE/POD|ADDRESS|…";

export const WHICH_OPTIONS: readonly Option[] = [
  {
    name: "since",
    value: "DURATION|TIME",
    summary: 'Flows since then: "5m", "2h", or a time such as 2026-01-31T14:05:00Z',
  },
  { name: "until", value: "DURATION|TIME", summary: "Flows until then" },
  { name: "pod", value: "POD", summary: 'Either end is this pod or container; NAMESPACE/POD, a name may end with "*"' },
  {
    name: "namespace",
    letter: "n",
    value: "NAMESPACE",
    summary:
      "Of names without a namespace in --pod, --from and --to; without these three: one end is in this namespace",
  },
  {
    name: "label",
    letter: "l",
    value: "KEY=VALUE,…",
    summary: "One end has all these labels; KEY alone: with any value",
  },
  {
    name: "from",
    value: END,
    summary:
      "Source: also a network such as 10.0.0.0/8, node/NAME, service/NAMESPACE/NAME, set/NAME (a network set) or outside",
  },
  { name: "to", value: END, summary: "Destination, before or behind a Service or host port; as --from" },
  { name: "port", value: "PORT", summary: "Destination port, before or behind a Service or host port" },
  { name: "protocol", value: "PROTOCOL", summary: "tcp, udp, sctp, icmp or a number" },
  {
    name: "verdict",
    value: "VERDICT",
    oneOf: ["allowed", "denied", "unknown"],
    refusedValues: new Map([
      ["forwarded", "use allowed"],
      ["FORWARDED", "use allowed"],
      ["dropped", "use denied"],
      ["DROPPED", "use denied"],
    ]),
    summary: "allowed, denied or unknown",
  },
  {
    name: "staged",
    value: "VERDICT",
    oneOf: ["allowed", "denied", "depends"],
    summary: "What staged policies would decide, of flows to which they matter: allowed, denied or depends",
  },
  {
    name: "policy",
    value: "POLICY",
    summary: "A rule of this policy decided; NAMESPACE/NAME, or NAME of a global one",
  },
  { name: "node", value: "NODE", summary: "As this node has seen them" },
];

export const WHO_OPTIONS: readonly Option[] = [
  { name: "local", summary: "Ask the agent of this node, even if a kubeconfig is given; needs root" },
  {
    name: "kubeconfig",
    value: "FILE",
    summary: "Ask all nodes of this cluster (default: KUBECONFIG; on a node without either: the agent of this node)",
  },
  { name: "context", value: "NAME", summary: "Context of the kubeconfig (default: its current context)" },
];
