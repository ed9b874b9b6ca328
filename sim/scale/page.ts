/** docs/scale.md, from what was measured: no figure is written by hand. Pure. */
import { networkKinds } from "../../src/agent/network/followed-network.ts";
import { WATCH_SECONDS } from "../../src/kube/client.ts";
import { ROUTED_BLOCK_KINDS } from "../../src/routing/inputs.ts";
import type { Measured, Place } from "./measured.ts";
import { ASSUMPTIONS, costsOf, nodeLimit, podsOf, predict } from "./model.ts";
import {
  agentTable,
  apiFanOutTable,
  fanOutTable,
  growthTable,
  manyTable,
  megabytes,
  milliseconds,
  number,
  predictionTable,
  realTable,
  restartTable,
  seconds,
  waitingTable,
  whole,
} from "./tables.ts";

const MEAN_WATCH_SECONDS = (WATCH_SECONDS.shortest + WATCH_SECONDS.longest) / 2;

/** How often the orchestrator's API changes a pod that starts, and one that ends: not measured. */
const API_EVENTS = { start: 5, end: 3 };
const RATES = [5, 20, 100];

export function scalePage(measured: Measured): string {
  const { many, real, fanOut, apiFanOut, restarts, tenants } = measured;
  const costs = costsOf(measured);
  const agents = Object.values(measured.agents).toSorted((left, right) => left.size.nodes - right.size.nodes);
  const largest = agents.at(-1);
  if (largest === undefined) throw new Error("No agent was measured");
  const { size, first, memory, zone } = largest;
  const atLargest = predict(costs, size.nodes);
  // The orchestrator's API has no labels of containers.
  const { containerLabels: _, ...watched } = networkKinds("");
  const watches = Object.keys(watched).length + Object.keys(ROUTED_BLOCK_KINDS).length;
  const { podStartsPerSecond, cores } = ASSUMPTIONS;
  const blockShare =
    1 -
    fanOut.rounds.reduce((sum, each) => sum + each.bytesPerEvent, 0) / fanOut.rounds.length / costs.add.bytesPerAgent;
  const limits = RATES.map(
    (rate) =>
      `| ${rate} | ${rounded(nodeLimit(costs, { ...ASSUMPTIONS, podStartsPerSecond: rate }))} | ${rounded(apiLimit(measured, rate))} |`,
  );
  return `# How far it scales

Generated from \`docs/scale.json\` (\`sim/scale/page.ts\`); \`make bench BENCH=scale\` measures and writes both. **Measured** figures are of the real programs; **computed** ones follow from
them by \`sim/scale/model.ts\`, and are labelled so.

- **One agent in a cluster of ${whole(size.nodes)} nodes, ${whole(podsOf(largest))} pods and ${whole(size.policies)} policies** (measured): ${seconds(first.agentMilliseconds)} of CPU time until it has converged for the first time,
  ${megabytes(memory.settled.residentBytes)} of memory, and ${milliseconds(costs.changeMilliseconds)} of CPU time for a pod or policy that changes, in a small cluster as in a large one (a node that joins costs more).
- **The bottleneck is the datastore, which sends each change to each agent**: ${number(costs.add.eventsPerAgent)} events with ${number(costs.add.bytesPerAgent / 1_000)} KB to each for a pod that starts (measured),
  and etcd needs ${number(costs.eventMilliseconds * 1_000)} microseconds of CPU time for each event of each watcher (measured).
- **The node limit** (computed): **about ${rounded(nodeLimit(costs))} nodes** with ${podStartsPerSecond} pods that start and ${podStartsPerSecond} that end per second, if the members of etcd have ${cores} cores together for watches. Beyond it
  something must stand between etcd and the agents that follows it once and serves many agents (a fan-out). There is none yet.

## One agent

The built \`vendor-node\` on a private host with a real etcd, real links of ${size.podsPerNode} pods, real tunnels, routes and nftables; all other nodes are records only. Each node has a
block and ${size.podsPerNode} pods; each policy selects the pods of one application, on ${whole(podsOf(largest) / size.policies)} nodes, and allows those of another one. Pods connect by VXLAN, without BGP. "Converged" is what the
kernel has, not what a log says.

${agentTable(agents)}

Times are those of a machine with other work (the benchmark ran with a raised priority), so the CPU times are more exact. One change: the median of several rounds.
The zone: the records of ${whole(zone.nodes)} nodes and ${whole(zone.pods)} pods are deleted, and then written again, as fast as etcd takes them; it ends when all routes and a pod that was written last are in the kernel.
The agent consists of two processes; the memory is that of the one that follows the datastore, not of the one that serves calls.

A node that joins may cost more in a large cluster than other changes: if the kernel's event about a route comes after the agent has replaced that route, it looks like a foreign change, and the agent compares all its routes once.

Two things were changed because of these measurements. etcd counts all that is left of a list for each page of it, so pages of one size cost it the square of the number of pods: now they grow. And of the pods of other nodes an agent keeps only
what rules can depend on, and what many pods have in common once.

## Many agents

Of ${whole(many.size.nodes)} nodes the replicas, the compiler of policy and the planner of routes, as \`vendor-node\` combines them, and the real allocator for ${whole(podsOf(many))} pods, in one process on a datastore that counts each request (\`sim/scale/many-agents.ts\`).
Counts are exact. For one of what the row names:

${manyTable(many)}

At rest the replicas ask nothing, and nobody writes anything; what the upkeep of a whole agent asks is in the table of the real agents below. Of the bytes that each agent is sent for a new pod, ${whole(blockShare * 100)} % are the record of the block from which it has its address: agents watch blocks because routes follow from them, and
each ADD writes its block, although it seldom changes a route.

## What a watcher costs the datastore

A real etcd, watchers that have their own connections each, and one client that writes records of pods:

${fanOutTable(fanOut)}

The slope is ${number(costs.eventMilliseconds * 1_000)} microseconds for an event of one watcher if records come one by one, and ${number(costs.bulkEventMilliseconds * 1_000)} microseconds in transactions of 100.

The same of a real kube-apiserver, and changes of one pod (${number((apiFanOut.rounds.at(-1)?.bytesPerEvent ?? 0) / 1_000)} KB of JSON for each event):

${apiFanOutTable(apiFanOut)}

The slope is ${number(costs.api.eventMilliseconds * 1_000)} microseconds for an event of one watcher.

## The API server starts again

A real kube-apiserver that is killed and started again below ${whole(restarts.since.replicas)} real replicas, each with its own connections and ${whole(restarts.since.collections)} watches (nodes, pods, namespaces, service accounts; ${whole(restarts.since.objects)} objects). A server that has
started answers every older revision with 410, so all of them list everything. Requests are counted in its audit log; the times are of a busy machine with two cores:

${restartTable(restarts)}

Each replica waits a random time of up to 20 ms for each node before it lists ([how](datastores.md#replicas)): up to 10 s of the 105 s. The load became less, the time did not. The rest of the time was not measured in parts; it
contains the start of the server and of its roles, the pauses of the replicas while it does not answer, and the processors that server and replicas share. The figures are of before a list that fails as a stream is made in pages the next time.

Who waits for that delay: from 3,000 nodes on it is up to 60 s (30 s on average), and the list comes after it. A node knows nothing new meanwhile. A pod that is created then has no network until the agent knows its endpoint: its ADD
waits for as long as \`policy_setup_timeout_seconds\` [says](network-config.md), by default not at all; then the pod starts, and what it sends and receives is dropped until the list has come. Pods that run keep their rules; a change of policy has effect as much later.
The delay is the same if one agent alone has lost the history, as after a silent watch and a compaction, when nobody else lists: an agent cannot tell. How often that happens was not measured.

## 20 real agents

${whole(real.nodes)} private hosts on a bridge, each with the built \`vendor-node\` and ${whole(real.podsPerNode)} pods that real ADDs connect, and one real etcd; all on one machine:

${realTable(real)}

One agent has ${megabytes(real.mainResidentBytes)} resident in the process that follows the datastore. These are the squares in the plots; they have fewer pods than the curves, which have ${ASSUMPTIONS.podsPerNode} per node.

## Large policies of other tenants

The built \`vendor-node\` with a real etcd and the real kernel, 100 pods of other tenants, and ${whole(tenants.namespaces)} namespaces with one pod and large policies each. First what grows: one policy of an administrator, which has no limit, each of its
rules with a selector of two pods, that is a set for IPv4 and one for IPv6; beside it the same policy with the addresses of these pods in its rules. A change of another tenant is written just after it:

${growthTable(tenants)}

The kernel searches the sets of a table one by one, for each set that is created and for each rule and element that names one, so the time grows with the square of the sets. So policies of tenants have [limits](policy.md#how-large-a-policy-may-be);
selectors stay sets [however few pods they select](decisions/large-policies.md). Then ${whole(tenants.namespaces)} namespaces write such policies at once, no two with the same sets, while other tenants change one policy after another:

${waitingTable(tenants)}

Large policies [wait behind the changes of others](policy.md#how-large-a-policy-may-be), one namespace after another, so a change waits for **one update of one namespace** at most, and for what the agent must read before it. The update of a namespace is [never divided](decisions/large-policies.md): the time for it is the least that others can
wait, and the column "one namespace again" is this time, with nine other namespaces in the table, including the removal of its former sets. Before there were turns, the longest change took, from the first to the last row with policies, 4.1, 5.9, 27, 7.6 and 22 s. The aim of one second is met where this time is below it and the machine has nothing else to do; much other work ran on its two cores, which is why some changes
took longer than the CPU time. Of the last row this does not explain all: where the agent waits there is not known. Measured when 50 lists, before and after together, counted as large; it is 100 that differ now, or 4,000 rules, and all of these policies are still beyond that.

The time for one update grows with the sets of the namespace times those of the table, and a namespace may have four times as many as these policies at the limit: **lower limits help** ([settings](policy.md#how-large-a-policy-may-be)). Others wait for several namespaces together, as without turns, if pods change that the large policies of all of them select, at the first update of an agent that starts, and for
the repair of a table that another program has changed.

Few selectors can be costly too if each selects all pods: 10,000 pods, and one policy with selectors of all of them, in the real kernel (2 cores with other work, 2026-11-18; \`unshare -n bun bench/policy-addresses.bench.ts 10000 50\`):

| selectors | elements | the policy is written | resident | then a pod starts or ends |
|---:|---:|---:|---:|---:|
| 10 | 100,002 | 0.4 s | 119 MB | 15 ms |
| 24 | 240,002 | 0.8 s | 212 MB | 16 ms |
| 50: at the limit | 500,002 | 3.6 s | 320 MB | 18 ms |
| 51: beyond the limit, it denies | 2 | 0.05 s | 78 MB | 24 ms |

Most of what is left is the comparison of the 10,000 pods by the program that measures. Without a limit, 1,000 such selectors and 1,000 pods took 11.8 s and 496 MB, and each pod that started anywhere 69 ms.

## Other sizes

Computed, with ${ASSUMPTIONS.podsPerNode} pods per node, ${podStartsPerSecond} pods that start and ${podStartsPerSecond} that end per second in the whole cluster (assumed; the load of Kubernetes' own scale tests), and ${cores} cores for watches (assumed: half of three members with four each). What an agent does is a line or a curve through
the measured clusters; what etcd does is events times watchers.

${predictionTable(costs)}

![Curves over the number of nodes: first convergence, memory, one change, a zone, cores and requests of etcd](scale.svg)

A rolling upgrade: each replaced agent lists everything once (${number(atLargest.startBytes / size.nodes / 1e6)} MB at ${whole(size.nodes)} nodes, computed from the measured records), and changes one record, which costs every other agent ${milliseconds(costs.nodeRecordMilliseconds)} of CPU time (measured). With ten agents replaced per
minute etcd's share is small; all at once is the row "all agents start at once".

## The node limit

Computed: the number of nodes at which watches take ${cores} cores of the datastore.

| pods that start, and end, per second | nodes on etcd | nodes on the Kubernetes API |
|---:|---:|---:|
${limits.join("\n")}

- **etcd**: an agent has two watches, whatever the number of kinds. The limit is CPU time of etcd; its bandwidth at ${rounded(nodeLimit(costs))} nodes is ${number((predict(costs, nodeLimit(costs)).serverBytes * 8) / 1e9)} Gbit per second. Following the claims of blocks instead of the blocks would halve the events and
  take away most of the bytes; a fan-out would take away the factor of the nodes.
- **The Kubernetes API**: an agent has ${watches} watches there, one per kind, of which only pods and blocks are busy. The column takes the measured cost of a small pod for each event, and ${API_EVENTS.start} events of
  a Pod that starts and ${API_EVENTS.end} of one that ends (assumed: created, scheduled, connected, running, ready; terminating, stopped, deleted), besides one of the block each. Pods with large specs cost more, and several servers have more cores.
  At rest an agent renews its watches, each every ${WATCH_SECONDS.shortest / 60} to ${WATCH_SECONDS.longest / 60} minutes: ${number(watches / MEAN_WATCH_SECONDS)} requests per second, ${number((watches / MEAN_WATCH_SECONDS) * size.nodes)} of ${whole(size.nodes)} agents (computed).
- **Memory and CPU of the agent** come next: at ${whole(size.nodes)} nodes ${megabytes(memory.settled.residentBytes)} settled and ${megabytes(zone.returns.residentBytes)} after a third of the nodes came back (measured), and ${number((largest.idle.agentMilliseconds / largest.idle.seconds / 1_000) * 100)} % of a core
  while nothing changes (measured over ${whole(largest.idle.seconds / 60)} minutes: every 90 seconds all routes and entries of tunnels are compared with the kernel's, and the memory is tidied up).

## How it was measured

| Part | When, commit, machine |
|---|---|
${[...agents.map((agent) => [`one agent, ${whole(agent.size.nodes)} nodes`, agent] as const), ["many agents", many] as const, ["watchers of etcd", fanOut] as const, ["watchers of kube-apiserver", apiFanOut] as const, ["restart of kube-apiserver, before", restarts.before] as const, ["the same, now", restarts.since] as const, ["real agents", real] as const, ["large policies", tenants] as const].map(([name, place]) => `| ${name} | ${placeText(place)} |`).join("\n")}

\`\`\`sh
make bench BENCH=scale                                        # everything, as root: half an hour
SCALE_PARTS=agents SCALE_NODES=5000 make bench BENCH=scale    # one part; the others stay as they are in docs/scale.json
SCALE_PARTS=tenants make bench BENCH=scale                    # the large policies: five minutes
SCALE_PARTS=page make bench BENCH=scale                       # only this page and its plots
\`\`\`

The cluster is made by \`sim/scale/cluster-records.ts\`. Not measured here: BGP (a mesh of thousands of nodes needs route reflectors), clusters with large network sets, several etcd members, the
Kubernetes API at this size.
`;
}

function apiLimit(measured: Measured, rate: number): number {
  const costs = costsOf(measured);
  const events = (count: number) => count + 1;
  return nodeLimit(
    {
      ...costs,
      ...costs.api,
      add: { ...costs.add, eventsPerAgent: events(API_EVENTS.start) },
      remove: { ...costs.remove, eventsPerAgent: events(API_EVENTS.end) },
    },
    { ...ASSUMPTIONS, podStartsPerSecond: rate },
  );
}

function placeText({ time, commit, host }: Place): string {
  return `${time.slice(0, 10)}, ${commit}; ${host.processor}, ${host.processors} cores, Linux ${host.kernel}, Bun ${host.bun}`;
}

/** Two digits: a computed limit is no more exact than that. */
function rounded(value: number): string {
  return whole(Number(value.toPrecision(2)));
}
