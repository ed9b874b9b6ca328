/**
 * `make soak`: runs the long tests at full size, one after another. `make test`
 * runs the same files at a smaller size (test/support/proof-size.ts).
 * `make soak SOAK=storm` runs only the files with that word in their name.
 */
import type { PartName } from "../test/parts/table.ts";
import { installPrograms } from "./programs/install.ts";
import { addReports, CRASHED, countsOf, EMPTY_REPORT } from "./test-report.ts";
import { printCounts, step, testGroup } from "./test-run.ts";

interface Proof {
  readonly place: string;
  readonly proves: string;
  /** Those that `make test` does not build. */
  readonly parts?: readonly PartName[];
}

const EARLIER_ORCHESTRATORS: readonly PartName[] = ["kubernetes-1.24", "kubernetes-1.30"];

const PROOFS: readonly Proof[] = [
  {
    place: "test/ipam/cluster-growth.test.ts",
    proves: "5,000 nodes x 50 pods: at p99 at most 5 round trips per ADD",
  },
  {
    place: "test/ipam/storm.test.ts",
    proves: "50 processes x 200 ADD and DEL on each datastore, undisturbed and killed",
  },
  {
    place: "test/ipam/etcd-trouble.test.ts",
    proves: "20 workers while etcd's leader is killed, frozen or disconnected, and while etcd's quota is exhausted",
  },
  {
    place: "test/plugin/crash.test.ts",
    proves:
      "ADD and DEL killed at every point, on each datastore, at both levels of atomicity and with host-local, with each way to recover",
  },
  {
    place: "src/ipam/interleavings.test.ts",
    proves:
      "two allocators at once in every order of up to four turns, at both levels of atomicity: never a corrupt record",
  },
  {
    place: "test/kube/cluster-network-policy.test.ts",
    proves: "all conformance tests of ClusterNetworkPolicy pass on each datastore",
  },
  {
    place: "src/routing/reachability.test.ts",
    proves: "the plans of all nodes lead every packet to its pod, in 5,000 random clusters of every mode",
  },
  {
    place: "src/routing/incremental.test.ts",
    proves: "the plan of a node is the same after any history of changes, in 5,000 random histories",
  },
  {
    place: "test/routing/bird.test.ts",
    proves: "BIRD and the node agent killed 100 times while blocks come and go: no packet is lost",
  },
  {
    place: "test/plugin/storm.test.ts",
    proves: "100 sandboxes at once on each datastore, three rounds of ADD, CHECK, and DEL concurrently with ADD",
  },
  {
    place: "test/plugin/random-calls.test.ts",
    proves: "100,000 random calls, each in its own process: a result or one error, and nothing left behind",
  },
  {
    place: "test/agent/killed.test.ts",
    proves:
      "the node agent killed at every point of ADD and DEL, on each datastore and with host-local: its callers complete",
  },
  {
    place: "test/agent/storm.test.ts",
    proves: "60 calls at once and 3,000 in a row through the node agent on each datastore, which leaks nothing",
  },
  {
    place: "test/console/",
    proves:
      "the console in a real browser: each view at two sizes and in two colours, readers with few rights, sessions that end, pages of others, 100,000 flows",
  },
  {
    place: "test/deploy/chart.test.ts",
    proves: "the chart is installed, changed and removed by Helm 3 and Helm 4",
  },
  {
    place: "test/clients/cnitool.test.ts",
    proves: "cnitool with every network under test in every version that it supports",
  },
  {
    place: "test/clients/podman.test.ts",
    proves: "podman on every network under test",
  },
  {
    place: "test/clients/containerd.test.ts",
    proves: "containerd and ctr on every network under test",
  },
  {
    place: "test/clients/runtime-driver.test.ts",
    proves: "the runtime of the tests with every network under test",
  },
  {
    place: "test/datastore/etcd-replica.test.ts",
    proves: "copies of etcd in random histories of broken connections, with its gateway on and off",
  },
  {
    place: "test/identity/identity.test.ts",
    proves: "two builds under other names, none of which contains a name of the others",
  },
  {
    place: "test/bandwidth/chain.test.ts",
    proves: "bandwidth limits before and after host ports, after our main plugin, ptp and bridge",
  },
  {
    place: "test/firewall/source-prefixes.test.ts",
    proves: "source prefixes of pods on each datastore",
  },
  {
    place: "test/policy/agent.test.ts",
    proves: "the node agent enforces policy, and its rules outlive it, on each datastore",
  },
  {
    place: "test/kube/annotations.test.ts",
    proves: "annotations of pods and namespaces on each datastore, each with the node agent",
  },
  {
    place: "test/kube/node.test.ts",
    proves: "the nodes of the tests with upstream's plugins: restarts, a reboot, static pods, an IPv6 cluster",
  },
  {
    place: "test/kube/pods.test.ts",
    proves:
      "a real kubelet with containerd: 30 pods, annotations, restarts, reboots, lost sandboxes; on etcd and on the orchestrator's API, IPv4, dual stack and IPv6 only, with and without the node agent",
  },
  {
    place: "test/kube/connectivity.test.ts",
    proves:
      "connectivity test on two real nodes: all well, a cut tunnel, a policy that closes all pods, an image that does not exist, Ctrl-C",
  },
  {
    place: "test/kube/kubernetes-page.test.ts",
    proves: "the pages about an installation by hand and about admission control: each command, on a real node",
  },
  {
    place: "test/kube/two-nodes.test.ts",
    proves:
      "two real nodes with agents, controllers and kube-proxy, on etcd and on the orchestrator's API: pods, Services and NetworkPolicies across nodes, an upgrade of the agents without a lost packet, a node that restarts, a node that is deleted, pod CIDRs by static routes and by BGP",
  },
  {
    place: "test/deploy/package.test.ts",
    proves:
      "the Debian package has the same bytes if it is built again, and a purge leaves running containers their network",
  },
  {
    place: "test/deploy/release.test.ts",
    proves: "make release ARTIFACTS=all: everything for both architectures, with checksums that hold",
  },
  {
    place: "test/deploy/image.test.ts",
    proves: "the image for arm64: its programs run under qemu",
  },
  {
    place: "test/kube/agent-in-pod.test.ts",
    proves:
      "the node agent as a pod of the image on a real kubelet: it serves the calls of the runtime, and runs BIRD of the image",
  },
  {
    place: "test/policy/other-plugin.test.ts",
    proves: "the agent beside upstream's ptp, on each datastore: policy, and no route, tunnel or NAT",
  },
  {
    place: "test/kube/other-network.test.ts",
    proves:
      "two real nodes on which the product enforces policy and routes nothing, on each datastore: upstream's ptp connects the pods, or the product with the ranges of the Nodes",
  },
  {
    place: "test/operator/operator.test.ts",
    proves: "the operator killed after each of its writes installs and removes the same",
  },
  {
    place: "test/install/faults.test.ts",
    proves:
      "the operator on two real nodes: a restarted API server, an image that does not exist, two operators, and nothing left",
  },
  {
    place: "test/install/ways.test.ts",
    proves:
      "installed by an Installation on etcd, by one with the ranges of the nodes, by the admin tool and by Helm, on two real nodes from nothing, and removed without a trace",
  },
  {
    place: "test/upgrade/chart.test.ts",
    proves:
      "charts and manifests of the operator of v3.22, v3.26 and v3.28 are upgraded and rolled back, by Helm 3 and Helm 4, on today's Kubernetes and on v1.24, with its PodSecurityPolicy",
    parts: EARLIER_ORCHESTRATORS,
  },
  {
    place: "test/upgrade/two-nodes.test.ts",
    proves:
      "two real nodes of the previous build are upgraded under traffic and policy, on the orchestrator's API and on etcd: no packet is lost, no denied one gets through",
  },
  {
    place: "test/install/manifests.test.ts",
    proves: "each manifest on two real nodes from nothing: pods, policy, Services, and nothing is left on the nodes",
  },
  {
    place: "test/install/dual-stack.test.ts",
    proves:
      "two real nodes with IPv4 get IPv6 and go back, as docs/dual-stack.md says, by the operator and by a manifest: no packet of running pods is lost, and every way between new pods is tried",
  },
  {
    place: "test/demo/cluster.test.ts",
    proves:
      "make demo CLUSTER=1, installed by the operator, on each datastore within two minutes; interrupted or killed it leaves no process, cgroup or file",
  },
  {
    place: "test/demo/kept-cluster.test.ts",
    proves:
      "make cluster on each datastore, used from other shells, updated, killed in parts; make cluster-down leaves nothing",
  },
  {
    place: "test/kube/control-plane-killed.test.ts",
    proves:
      "50 pods start and end while API server and etcd are killed and restarted: no address is used twice, none is lost",
  },
  {
    place: "src/policy/agreement.test.ts",
    proves: "policy of 20,000 random clusters: the compiled rules and the judge agree on every packet",
  },
  {
    place: "test/alp/judges-agree.test.ts",
    proves:
      "100,000 random requests to pods of random clusters, after random updates: the sidecar and the slow evaluator agree on the verdict and on the rule that decides",
  },
  {
    place: "src/policy/compile/incremental.test.ts",
    proves: "5,000 random histories of policies: changed step by step, the rules equal those of the final state",
  },
  {
    place: "src/policy/table/table-changes.test.ts",
    proves:
      "5,000 random histories of policies: after each batch, packets are judged as before the change or as after it",
  },
  {
    place: "src/controllers/leaks/collector.test.ts",
    proves:
      "20,000 random histories with two leak collectors that see old states and crash: no address in use is freed, every leaked one is",
  },
  {
    place: "test/policy/kernel-table.test.ts",
    proves: "random changes of policy in the real kernel, and tables that the next agent takes over",
  },
  {
    place: "test/policy/rule-changes.test.ts",
    proves:
      "5 s of each kind of change beside a flood of packets: none that is allowed is lost, none that is denied passes",
  },
  {
    place: "test/policy/no-gap.test.ts",
    proves: "the same with the built node agent, restarted and killed, on each datastore",
  },
  {
    place: "test/flows/captured-flows.test.ts",
    proves:
      "60 random sets of policies with 120 connections each, and 40 while collector or agent are killed: the flows equal what was on the links",
  },
  {
    place: "test/flows/flood.test.ts",
    proves:
      "a minute of a scan of 50,000 ports a second: the collector stays small, and every packet is recorded or counted",
  },
  {
    place: "test/policy/packets.test.ts",
    proves: "every row of the packet table of network policy on each datastore",
  },
  {
    place: "test/routing/packets.test.ts",
    proves:
      "packets between four nodes in two subnets in every mode, with natOutgoing, policy and ports of nodes in each of them",
  },
  {
    place: "test/routing/faults.test.ts",
    proves:
      "the agent killed 100 times while pods come and go, BIRD killed, a node cut off for a minute, the datastore gone for a minute, damage by hand: packets that it does not concern are never lost, the others flow again within two seconds",
  },
  {
    place: "test/controllers/copies.test.ts",
    proves:
      "the controllers killed 100 times while the cluster is at work end with the records of an undisturbed run; a leader that is paused for longer than its lease; datastore and API away for a minute",
  },
  {
    place: "test/controllers/kubelets.test.ts",
    proves:
      "real kubelets end pods by force and by eviction, and a node is lost: IPAM is consistent, and running pods keep their addresses",
  },
  {
    place: "test/admin/alp.test.ts",
    proves: "the sidecar is inserted into the injector of every minor of the mesh, also into its real template",
  },
  {
    place: "test/alp/alp.test.ts",
    proves:
      "application layer policy in a real pod with real Envoy: 100,000 random requests decided as by the slow judge, 40 edits under load, agent and sidecar killed 20 times each under load: no denied request gets through",
  },
  {
    place: "src/upgrade/steps/storage/step.test.ts",
    proves: "the move of an earlier storage killed at every write, before and after it took effect: the same end",
  },
  {
    place: "test/upgrade/whole.test.ts",
    proves:
      "clusters of v3.15, v3.22, v3.26 and v3.28 by each method, and of unedited manifests of v3.24, v3.25 and v3.27, are upgraded, killed after every step, and rolled back: nothing is asked, pods keep their addresses, the end is that of an undisturbed run",
  },
  {
    place: "test/upgrade/whole-earlier-orchestrators.test.ts",
    proves: "the same on Kubernetes v1.24 and v1.30, by manifest, operator and chart, from v3.15 to v3.28",
    parts: EARLIER_ORCHESTRATORS,
  },
  {
    place: "test/operator/earlier-orchestrators.test.ts",
    proves: "each manifest of dist/manifests/older/, vendorctl install and the operator on Kubernetes v1.24 and v1.30",
    parts: EARLIER_ORCHESTRATORS,
  },
  {
    place: "sim/kernel/rtnetlink.test.ts",
    proves:
      "1,000 random sequences of messages: the model of the kernel gives the state, errors and events of the real one",
  },
  {
    place: "sim/kernel/nftables/differential.test.ts",
    proves: "1,000 random sequences of nf_tables batches: the model refuses and keeps what the real kernel does",
  },
  {
    place: "sim/kernel/nftables/policy-table.test.ts",
    proves:
      "tables of random policies are the same on the model and in the kernel, and judge packets as the slow judge",
  },
  {
    place: "sim/simulation.test.ts",
    proves:
      "an hour (MINUTES=5 for less) of simulated clusters under every fault, with the table of what met what: nothing is violated",
  },
  {
    place: "sim/planted/planted.test.ts",
    proves: "each of the planted bugs is found by the simulation within ten minutes",
  },
  {
    place: "test/vm/ipip.test.ts",
    proves:
      "two virtual machines with Debian 12's and Debian 13's kernel: packets of pools with ipipMode Always and CrossSubnet",
  },
  {
    place: "test/vm/ipvs.test.ts",
    proves: "the same kernels: policy of pods that use a Service of IPVS or are behind it, in both directions",
  },
  {
    place: "test/vm/sctp.test.ts",
    proves: "the same kernels: whole SCTP associations through a host port, and allowed and denied by port",
  },
  {
    place: "test/vm/denied-flows.test.ts",
    proves:
      "the same kernels: a denied connection names the Service or host port that was asked for, and the rules that accepted it before",
  },
  {
    place: "test/vm/kernels.test.ts",
    proves:
      "the same kernels: the tests of rtnetlink, nftables, log groups, tunnel devices, NAT and the packets that policy judges, as they are",
  },
  {
    place: "test/vm/power-loss.test.ts",
    proves:
      "the same kernels: after a shutdown and a power loss under ADD and DEL, files and datastore are whole, and no address is lost, leaked or used twice",
  },
  {
    place: "test/bandwidth/rates.test.ts",
    proves: "bandwidth limits from 1 Mbit/s to 1 Gbit/s in both directions, measured with iperf3",
  },
];

const wanted = process.argv.slice(2);
const chosen = PROOFS.filter(({ place }) => wanted.length === 0 || wanted.some((word) => place.includes(word)));
for (const { place, proves } of chosen) console.log(`${place}: ${proves}`);

await installPrograms();
const built = await step("build", [process.execPath, "scripts/build.ts"]);
const parts = [...new Set(chosen.flatMap((proof) => proof.parts ?? []))];
const hasParts = parts.length === 0 || (await step("parts", [process.execPath, "test/parts/build.ts", ...parts]));
let total = chosen.length > 0 ? EMPTY_REPORT : CRASHED;
if (chosen.length === 0) console.log(`No long test is named "${wanted.join(", ")}"`);
for (const { place } of chosen) {
  total = addReports(total, await testGroup({ name: place, places: [place], environment: { PROOF_SIZE: "soak" } }));
}
if (!built) console.log("not passed: the build failed");
printCounts(total);
if (!hasParts) console.log("not passed: a part was not built");
process.exit(built && hasParts && countsOf(total).failed === 0 ? 0 : 1);
