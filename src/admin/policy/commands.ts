import { identity } from "../../identity.ts";
import { loadOnce } from "../../load-once.ts";
import type { Command } from "../main/command.ts";
import { DRY_RUN_OPTION, NAMESPACE_OPTION, USUAL_NAMESPACE } from "../resources/options.ts";
import { DEFAULT_COUNT, DEFAULT_SECONDS, DRAFT_TIME, FLOW_OPTIONS, PACKET_OPTIONS, UNUSED_TIME } from "./options.ts";
import { BY_OPTION, WHAT_IF_OPTIONS } from "./what-if/options.ts";

export const policyExplain: Command = {
  kind: "command",
  name: "explain",
  summary: "Show which rule of which policy allows or denies a connection, and why",
  description: [
    "Evaluates the policies in the datastore for the first packet of a connection: the egress policies of its source, then the ingress",
    "policies of its destination. Replies and later packets of an allowed connection pass.",
    "On the way, the host endpoints of the nodes are evaluated too. A connection from or to a node passes the interface of hostendpoint/NAME, if",
    "that is given, otherwise of the host endpoint that expects the address; otherwise all host endpoints of the node are shown. Of a failsafe",
    "port, which is always open, it also says what would decide if the port were not one.",
    "With --method, --path or --principal it also evaluates the policies for an HTTP request over the connection, as the sidecar of its",
    "destination does. Without a sidecar, rules with http match nothing.",
    "A container in several networks has an address in each of them: as the destination that of the network in which both ends are, otherwise",
    "each is shown; as the source each, since the routes in the container choose it.",
    "A destination that a published port of this host, a host port of a pod, a Service or a floating IP leads to a workload is followed there.",
    "Published ports of other hosts are not known here. An address that is not that of a workload or a node is outside the network: no policy",
    "applies on its side.",
    "What the kernel of a node holds is not read: it follows the datastore within a second while the node agent runs. If the one of this host",
    "does not run, a note says so.",
    "With -f and --without it decides as if the resources were applied and deleted, with --staged as if all staged policies were promoted;",
    "nothing is written. Policies of Kubernetes (networking.k8s.io/v1) are taken too.",
  ].join("\n"),
  options: [
    {
      name: "from",
      value: "WORKLOAD|HOST|ADDRESS",
      summary: "Source: NAMESPACE/POD, a container, a node, hostendpoint/NAME or an address",
    },
    {
      name: "to",
      value: "WORKLOAD|HOST|ADDRESS",
      summary: "Destination: NAMESPACE/POD, a container, a node, hostendpoint/NAME or an address",
    },
    ...PACKET_OPTIONS,
    ...WHAT_IF_OPTIONS,
  ],
  needsDatastore: true,
  examples: [
    {
      command: "policy explain --from default/client --to default/web --port 80",
      does: "Why does the connection work, or not?",
    },
    {
      command: "policy explain --from 192.0.2.7 --to default/dns --protocol udp --port 53",
      does: "The same for a client outside the network",
    },
    { command: "policy explain --from default/client --to default/web --protocol icmp", does: "May it be pinged?" },
    {
      command: "policy explain --from 198.51.100.7 --to hostendpoint/node-1-eth0 --port 22",
      does: "May a client connect to a host itself?",
    },
    {
      command: "policy explain --from default/client --to default/web --port 80 --method POST --path /api/orders",
      does: "Does the sidecar of the destination allow the request?",
    },
    {
      command: "policy explain --from 198.51.100.7 --to 192.0.2.2 --port 8080",
      does: "May a client use the published port of a container?",
    },
    { command: "policy explain --from default/client --to 10.0.0.5 --port 443 -o json", does: "As JSON for a script" },
    {
      command: "policy explain --from default/client --to default/web --port 80 -f policies/ --without default/old",
      does: "What would decide with the policies of a directory, and without one that is stored?",
    },
  ],
  load: loadOnce(() => import("./explain/explain.ts")),
};

export const policyPreview: Command = {
  kind: "command",
  name: "preview",
  summary:
    "Show who could no longer reach whom, or newly, if files were applied, resources deleted or policies promoted",
  description: [
    "Compares the policies in the datastore with what they would be, and writes nothing. First lists what would be denied, then what would be",
    "allowed: between workloads by namespace and owner, host endpoints, and networks outside; exactly, for every protocol and port.",
    "More than 60 rows are summed up by namespace, which --by changes.",
    "Then does the same with connections that were recorded, if flows are on: how many of each would be denied, and how many of them are open.",
    "A pod that is gone since is judged as it was recorded.",
    "What host endpoints decide about forwarded packets, and sidecars about requests, is not compared; a note says so if that may change.",
    "The exit code is 3 if anything would be denied, 0 otherwise, and 1 or 2 for errors.",
  ].join("\n"),
  options: [
    ...WHAT_IF_OPTIONS,
    BY_OPTION,
    { name: "since", value: "DURATION|TIME", summary: "Compare connections recorded since then (default: 1d)" },
    { name: "local", summary: "Ask the agent of this node for flows, even if a kubeconfig is given; needs root" },
  ],
  needsDatastore: true,
  examples: [
    { command: "policy preview -f policies/", does: "What would the policies of a directory change?" },
    { command: "policy preview -f new.yaml --without shop/old --since 7d", does: "A policy in place of another" },
    { command: "policy preview --staged", does: "What would change if all staged policies were promoted?" },
    { command: "policy preview -f policies/ -o json", does: "In CI: exit code 3 if anything would be denied" },
  ],
  load: loadOnce(() => import("./what-if/preview.ts")),
};

export const policyMatrix: Command = {
  kind: "command",
  name: "matrix",
  summary: "Show who may reach whom: workloads, host endpoints and networks outside",
  description: [
    "Evaluates the policies in the datastore for every pair, exactly, for every protocol and port. What is not listed may not reach.",
    "Workloads are grouped by namespace and owner, and split if rules tell them apart; with more than 60 groups by namespace alone, which",
    "--by changes. With -f and --without it compares: what would be denied comes first, then what would be allowed.",
    "What host endpoints decide about forwarded packets, and sidecars about requests, is not in it. A node always reaches its own workloads.",
  ].join("\n"),
  options: [
    ...WHAT_IF_OPTIONS.filter(({ name }) => name !== NAMESPACE_OPTION.name),
    {
      ...NAMESPACE_OPTION,
      summary: "Only pairs with an end in the namespace (default: all), also that of what -f and --without name",
    },
    BY_OPTION,
    {
      name: "output",
      letter: "o",
      value: "FORMAT",
      oneOf: ["text", "csv", "svg", "json"],
      summary: "Output format: text (default), csv, svg (a picture) or json",
    },
  ],
  needsDatastore: true,
  examples: [
    { command: "policy matrix", does: "Who may reach whom?" },
    { command: "policy matrix -n shop", does: "The same for one namespace: who may reach it, and whom it may reach" },
    { command: "policy matrix -f policies/ -o svg > matrix.svg", does: "A picture of what a change would do" },
  ],
  load: loadOnce(() => import("./what-if/matrix.ts")),
};

export const policyTrace: Command = {
  kind: "command",
  name: "trace",
  summary: "Watch packets on this node, and show which rule drops or allows each of them",
  description: [
    "With --dropped and neither --from nor --to: shows the packets that policy drops on this node, whoever sends them, until Ctrl-C. Only",
    "dropped packets are looked at; after 100 that are shown, or 5000 in all, the rest of the second is left out, and a warning says so.",
    "With --from or --to: shows the decision of the kernel itself about packets of a flow: a rule of a policy, the spoofing guard, or a chain",
    "of another program (firewalld, ufw, Docker …), which is named with table, chain and rule. Of an allowed connection only the first packet",
    "is shown. At most 50 packets a second are watched.",
    "Runs on the node of the sender or of the receiver, as root, while the packets are sent. Packets that are sent by a workload of another",
    "node and dropped there do not arrive here: run it there. Replies are the flow from the destination to the source.",
    "Ends after --count packets, --timeout seconds or Ctrl-C; the exit code is 1 if --timeout ended it and no packet was shown. Leaves nothing",
    "in the kernel, even if it is killed.",
  ].join("\n"),
  options: [
    { name: "dropped", summary: "Show only packets that are dropped; without --from and --to all that policy drops" },
    ...FLOW_OPTIONS,
    {
      name: "timeout",
      value: "SECONDS",
      summary: `How long to wait for packets (default ${DEFAULT_SECONDS}; all dropped packets: no limit)`,
    },
    {
      name: "count",
      value: "NUMBER",
      summary: `How many packets to show (default ${DEFAULT_COUNT}; all dropped packets: no limit)`,
    },
  ],
  needsDatastore: true,
  examples: [
    { command: "policy trace --dropped", does: "What does policy block on this host now?" },
    { command: "policy trace --dropped --port 5432", does: "The same for one destination port" },
    {
      command: "policy trace --from default/client --to default/web --port 80",
      does: "Which rule drops the packets between two pods?",
    },
    {
      command: "policy trace --to 10.0.0.5 --protocol icmp --timeout 60",
      does: "Who lets pings to this address pass?",
    },
    { command: "policy trace --from default/client -o json", does: "All packets of a pod, one JSON object per line" },
  ],
  load: loadOnce(() => import("./trace/trace.ts")),
};

export const policyCounters: Command = {
  kind: "command",
  name: "counters",
  summary: "Show how many packets each rule of the policies allowed, logged or dropped on this node",
  description: [
    "Runs on the node, as root. Reads the counters of the rules in the kernel. Counted are the packets that a rule decides about or logs: the",
    "first of a connection, and those that are dropped; later packets of an allowed connection pass before all rules.",
    "Shows the rules of policies, and what else has decided about a packet; --all shows the rest. The column ENDPOINTS names the containers",
    "and host endpoints of this node that the rule is evaluated for. A name that is not of a policy is taken for a container: shows the rules",
    "that are evaluated for it. The kernel counts a rule once for all endpoints of its row. -o json has the same rows.",
    "A counter continues when the agent writes its rule again, also after a restart of the agent. It begins at 0 when the policy is created,",
    "when the first workload that it selects starts on this node, and after a reboot. The lines about the end of a tier and about profiles",
    "begin at 0 also when the list of policies that apply to a workload changes; the metrics of the agent do not.",
  ].join("\n"),
  operands: "[POLICY|WORKLOAD]",
  options: [
    { name: "dropped", summary: "Show only rules that dropped packets" },
    {
      name: "for",
      value: "WORKLOAD|HOST",
      summary: "Show the rules that are evaluated for NAMESPACE/POD, a container or hostendpoint/NAME of this node",
    },
    { name: "all", summary: "Show also rules of the product itself that have decided about no packet" },
  ],
  needsDatastore: true,
  examples: [
    { command: "policy counters", does: "Which rules match, and how often?" },
    {
      command: "policy counters shop/db",
      does: `The rules of one policy: NAMESPACE/NAME, or NAME of a global policy or of one in namespace ${USUAL_NAMESPACE}`,
    },
    { command: "policy counters --for shop/web", does: "The rules that are evaluated for one container" },
    { command: "policy counters --dropped", does: "What is dropped on this node, and for which containers?" },
    { command: "policy counters -o json", does: "As JSON for a script" },
  ],
  load: loadOnce(() => import("./counters.ts")),
};

export const policyPromote: Command = {
  kind: "command",
  name: "promote",
  summary: "Enforce a staged policy, or delete the enforced one if that is staged",
  description: [
    "Writes the enforced policy of the same name as the staged one, or deletes it with stagedAction Delete, and then deletes the staged one.",
    "If it is stopped in between, both are there and say the same: call it again.",
    "Without --yes it only shows the preview of policy preview, whom this closes or opens, and what it would do, and the exit code is 1.",
    "With -o json the preview is left out.",
    "The enforced policy of a StagedKubernetesNetworkPolicy is one of networking.k8s.io, which kubectl writes: use --manifest.",
  ].join("\n"),
  operands: "NAME… | NAMESPACE/NAME… | KIND/NAME…",
  options: [
    NAMESPACE_OPTION,
    { name: "yes", summary: "Do it" },
    { name: "manifest", summary: "Print the enforced policies as YAML, and change nothing" },
    DRY_RUN_OPTION,
  ],
  needsDatastore: true,
  examples: [
    { command: "policy promote shop/database", does: "What would it change?" },
    { command: "policy promote shop/database --yes", does: "Enforce it" },
    {
      command: "policy promote sknp/shop/web --manifest | kubectl apply -f -",
      does: "Enforce one with the fields of networking.k8s.io",
    },
  ],
  load: loadOnce(() => import("./promote.ts")),
};

export const policyDraft: Command = {
  kind: "command",
  name: "draft",
  summary: "Write policies that allow the connections that were recorded",
  description: [
    "Reads flows and prints policies for the workloads that took part: by owner and by labels that no rollout changes, Services, names of",
    "ports, and network sets for addresses outside. What was recorded is allowed, nothing else is: each rule was tried on the recorded",
    "packets. Comments say whom a rule is about, and where it is more general than what was recorded. On stderr: what is not allowed, and why.",
    "Everything is read, nothing is written: look at the draft, edit it, apply it. The same flows give the same text.",
    "Flows are asked for as by the command flows. What did not happen in that time, such as a monthly job, is not in them.",
    "With --flow the draft is not to be all that there is: it adds to the policies of now what one denied flow needs, and says what else",
    "denies it. It comes before a policy of the same namespace whose rule denies the flow; policies of other tiers, and global ones, it does",
    "not overrule.",
  ].join("\n"),
  options: [
    {
      name: "namespace",
      letter: "n",
      value: "NAMESPACE",
      summary: "Policies for its workloads (default: for the containers of hosts without Kubernetes)",
    },
    {
      name: "pod",
      value: "POD",
      summary: 'Only for this pod or container, and those with its owner; may end with "*"',
    },
    { name: "owner", value: "[KIND/]NAME", summary: "Only for the workloads of this Deployment, DaemonSet …" },
    { name: "label", letter: "l", value: "KEY=VALUE,…", summary: "Only for workloads with all these labels" },
    {
      name: "since",
      value: "DURATION|TIME",
      summary: `Flows since then: "2h", "7d", or a time such as 2026-01-31T14:05:00Z (default ${DRAFT_TIME})`,
    },
    { name: "until", value: "DURATION|TIME", summary: "Flows until then" },
    { name: "include-denied", summary: "Allow also what was denied" },
    {
      name: "flow",
      value: "ID",
      summary: "Only what allows this one denied flow, beside the policies that there are; nothing else changes",
    },
    {
      name: "aggregate",
      value: "LENGTH[,LENGTH]",
      summary: "Networks of this length stand for addresses outside, IPv4 and IPv6: 24,64 (default: single addresses)",
    },
    { name: "enforced", summary: "Write policies that are enforced when they are applied, not staged ones" },
    { name: "local", summary: "Ask the agent of this node for flows, even if a kubeconfig is given; needs root" },
  ],
  needsDatastore: true,
  examples: [
    { command: "policy draft -n shop > shop.yaml", does: "Policies for a namespace, from the flows of the last day" },
    { command: "policy draft -n shop --owner Deployment/web --since 7d", does: "Only for one Deployment" },
    { command: "policy draft --enforced > containers.yaml", does: "On a host without Kubernetes, for its containers" },
    { command: "policy draft -n shop --aggregate 24", does: "Networks of 256 addresses in place of single ones" },
    {
      command: `policy draft --flow node-1-8f3a --enforced | ${identity.adminTool} apply -f -`,
      does: "Allow one flow that `flows --verdict denied` shows",
    },
  ],
  load: loadOnce(() => import("./draft/draft.ts")),
};

export const policyUnused: Command = {
  kind: "command",
  name: "unused",
  summary: "Show rules that can never match or had no packet, and selectors that select nothing",
  description: [
    "can never match: what the rule says contradicts itself, types does not have its direction, or an earlier rule of a policy for the same",
    "workloads matches all that it matches. Only what is written is looked at: not every such rule is found, what is found is certain.",
    "selects nothing: no endpoint, or no member of the network sets, has such labels now.",
    "no packet: none in the flows of the time, and none counted by the kernel of this node, as far as each of them is known; WHY says it. Flows",
    "are asked for as by the command flows. How long they go back is said on stderr; flowHistoryAge is a day unless it was raised. The kernel",
    "counts since a rule is there, at most since the node started. Rules that pass or log have no flows.",
    "Flows that you may not see are not counted, and a rule is looked for by the number that it has now: after a policy was edited, wait.",
  ].join("\n"),
  options: [
    {
      name: "for",
      value: "DURATION",
      summary: `How long a rule has had no packet: "12h", "30d" (default ${UNUSED_TIME})`,
    },
    { ...NAMESPACE_OPTION, summary: "Only policies of the namespace (default: all policies)" },
    { name: "local", summary: "Ask the agent of this node for flows, even if a kubeconfig is given; needs root" },
  ],
  needsDatastore: true,
  examples: [
    { command: "policy unused", does: "What could be removed?" },
    { command: "policy unused -n shop", does: "In the policies of one namespace" },
    { command: "policy unused --for 30d -o json", does: "As JSON for a script" },
  ],
  load: loadOnce(() => import("./unused.ts")),
};
