/**
 * One real node agent in a large cluster: the built program on a private host, with a real etcd that holds the records of all
 * nodes. Whether it has converged is seen in the kernel, at a record that is written last.
 */
import {
  applicationOf,
  blockRecord,
  type ClusterSize,
  nodeName,
  nodeRecord,
  nodesOfZone,
  podAddress,
  policyRecord,
  recordsOfNode,
  type StoredRecord,
  ZONES,
} from "../../sim/scale/cluster-records.ts";
import type { AgentAtScale, Burst, Spent } from "../../sim/scale/measured.ts";
import { POLICY_TABLE } from "../../src/firewall/policy-table.ts";
import { openNetlinkSocket } from "../../src/linux/netlink-socket.ts";
import { listElements, listSets } from "../../src/linux/nftables/read.ts";
import { findLink } from "../../src/linux/rtnetlink/link.ts";
import { listRoutes } from "../../src/linux/rtnetlink/route.ts";
import { treeCpuMilliseconds } from "./process-tree.ts";
import type { ScaleEtcd } from "./scale-etcd.ts";
import { type IsThere, ScaleExpectation } from "./scale-expectation.ts";
import { concerning, newPeer, unrelatedPods, writeCluster } from "./scale-load.ts";
import { makeLinks, memoryOf, OWN, type RunningAgent, settle, spend, startAgent, UPLINK, until } from "./scale-node.ts";

interface ScaleMeans {
  readonly etcd: ScaleEtcd;
  /** The directory of the built programs. */
  readonly folder: string;
  readonly size: ClusterSize;
  readonly rounds: number;
  readonly idleSeconds: number;
  readonly upgradesPerSecond: number;
}

/** Changes do not follow each other so closely that they are merged. */
const PAUSE_MILLISECONDS = 200;
const UNRELATED_PODS = 100;
/** Numbers of nodes that the cluster does not have. */
const BEYOND = { markers: 1_000, joined: 500, unrelated: 10_000 };

export async function measureAgent(means: ScaleMeans): Promise<AgentAtScale> {
  const { etcd, size } = means;
  await makeLinks(size.podsPerNode);
  const records = await writeCluster(etcd, size);
  const measured = new MeasuredAgent(means);
  const first = await measured.start();
  await measured.settle();
  const settled = measured.memory();
  const kernel = measured.kernelSize();
  const idle = await measured.idle();
  const changes = await measured.changes();
  const afterChanges = measured.memory();
  const zone = await measured.zone();
  const upgrade = await measured.upgrade();
  const afterwards = measured.memory();
  const restart = await measured.restart();
  return {
    ...{ size, records, first, restart, kernel, idle, changes, zone, upgrade },
    memory: { settled, afterChanges, afterwards, etcdBytes: memoryOf(etcd.pid).residentBytes },
  };
}

class MeasuredAgent {
  private readonly sockets = { netfilter: openNetlinkSocket("netfilter"), route: openNetlinkSocket("route") };
  private readonly uplink = findLink(this.sockets.route, UPLINK)?.index ?? 0;
  private readonly expectation = new ScaleExpectation(nodeName(OWN), this.sockets);
  private running: RunningAgent | undefined;
  private markers = 0;

  constructor(private readonly means: ScaleMeans) {
    this.expectation.load(concerning(means.size));
  }

  /** Nothing is in the kernel yet. */
  async start(): Promise<Spent> {
    const { folder, size } = this.means;
    const last = podAddress(size.nodes - 1, 0);
    return this.spend("first convergence", undefined, async () => {
      this.running = startAgent(folder);
      await until(() => this.expectation.isLoaded() && this.expectation.isRouted(last, this.uplink));
    });
  }

  settle(): Promise<void> {
    return settle(this.agent);
  }

  memory() {
    return memoryOf(this.agent.pid);
  }

  kernelSize(): AgentAtScale["kernel"] {
    const { netfilter, route } = this.sockets;
    const sets = listSets(netfilter, POLICY_TABLE);
    const elements = sets.reduce((sum, { name }) => sum + listElements(netfilter, POLICY_TABLE, name).length, 0);
    const routes = listRoutes(route, 4).filter(({ linkIndex }) => linkIndex !== this.uplink).length;
    return { sets: sets.length, elements, routes };
  }

  async idle(): Promise<AgentAtScale["idle"]> {
    const { etcd, idleSeconds } = this.means;
    const { requests } = await etcd.counters();
    const before = treeCpuMilliseconds(this.agent.pid);
    await Bun.sleep(idleSeconds * 1_000);
    const agentMilliseconds = treeCpuMilliseconds(this.agent.pid) - before;
    return { seconds: idleSeconds, agentMilliseconds, requests: (await etcd.counters()).requests - requests };
  }

  async changes(): Promise<AgentAtScale["changes"]> {
    const { size, etcd } = this.means;
    const unrelated = unrelatedPods(size.nodes + BEYOND.unrelated, UNRELATED_PODS, size);
    return {
      allowedPod: await this.rounds("a pod that a local policy allows", (round) =>
        this.write([newPeer(size.nodes + round, size)]),
      ),
      policy: await this.rounds("a policy of a local pod", (round) => {
        const application = applicationOf(OWN, round % size.podsPerNode, size);
        return this.write([policyRecord(application, size, 8_000 + round)]);
      }),
      node: await this.rounds("a new node", async (round) => {
        const joined = size.nodes + BEYOND.joined + round;
        await etcd.write([nodeRecord(joined), blockRecord(joined, 0)]);
        await until(() => this.expectation.isRouted(podAddress(joined, 0), this.uplink), 0.5);
      }),
      unrelatedPods: {
        count: UNRELATED_PODS,
        ...(await this.spend("unrelated pods", this.agent, () => this.write([...unrelated, this.marker()]))),
      },
    };
  }

  /** A zone without the measured node: all its records are deleted, and written again. */
  async zone(): Promise<AgentAtScale["zone"]> {
    const { size, etcd } = this.means;
    const nodes = nodesOfZone(size, (OWN + 1) % ZONES);
    const records = nodes.flatMap((node) => recordsOfNode(node, size));
    const isRouted = (node: number) => this.expectation.isRouted(podAddress(node, 0), this.uplink);
    const fails = await this.burst(
      "a zone fails",
      () => etcd.delete(records.map(({ key }) => key)),
      () => !nodes.some(isRouted),
    );
    const returns = await this.burst(
      "a zone returns",
      () => etcd.write(records),
      () => nodes.every(isRouted),
    );
    return { nodes: nodes.length, pods: nodes.length * size.podsPerNode, fails, returns };
  }

  /** Each node writes its record, one after another. */
  async upgrade(): Promise<AgentAtScale["upgrade"]> {
    const { size, etcd, upgradesPerSecond: perSecond } = this.means;
    const write = async () => {
      const started = performance.now();
      for (let node = OWN + 1; node < size.nodes; node++) {
        const due = started + (node * 1_000) / perSecond;
        if (due > performance.now()) await Bun.sleep(due - performance.now());
        await etcd.write([nodeRecord(node, "2")]);
      }
    };
    return { nodes: size.nodes, perSecond, ...(await this.burst("an upgrade", write, () => true)) };
  }

  /** The agent finds the table and the routes of the one before. */
  async restart(): Promise<Spent> {
    const { etcd, folder } = this.means;
    await this.agent.stop();
    const last = this.marker();
    const isThere = this.expectation.after([last]);
    await etcd.write([last]);
    const spent = await this.spend("restart", undefined, async () => {
      this.running = startAgent(folder);
      await until(isThere);
    });
    await this.agent.stop();
    return spent;
  }

  private get agent(): RunningAgent {
    if (this.running === undefined) throw new Error("The agent is not started");
    return this.running;
  }

  /** A pod that nothing else writes, and that a policy here allows: when it is applied, so is what was written before it. */
  private marker(): StoredRecord {
    return newPeer(this.means.size.nodes + BEYOND.markers + this.markers++, this.means.size);
  }

  private async write(records: readonly StoredRecord[]): Promise<void> {
    const isThere = this.expectation.after(records);
    await this.means.etcd.write(records);
    await until(isThere, 0.5);
  }

  private async rounds(name: string, change: (round: number) => Promise<void>): Promise<readonly Spent[]> {
    const spent: Spent[] = [];
    for (let round = 0; round < this.means.rounds; round++) {
      await Bun.sleep(PAUSE_MILLISECONDS);
      spent.push(await this.spend(name, this.agent, () => change(round)));
    }
    return spent;
  }

  private async burst(name: string, write: () => Promise<void>, isDone: IsThere): Promise<Burst> {
    const last = this.marker();
    const isThere = this.expectation.after([last]);
    let writingMilliseconds = 0;
    const spent = await this.spend(name, this.agent, async () => {
      const started = performance.now();
      await write();
      await this.means.etcd.write([last]);
      writingMilliseconds = performance.now() - started;
      await until(() => isThere() && isDone());
    });
    await this.settle();
    return { ...spent, writingMilliseconds, residentBytes: this.memory().residentBytes };
  }

  private async spend(name: string, before: RunningAgent | undefined, work: () => Promise<void>): Promise<Spent> {
    const spent = await spend(this.means.etcd, before, async () => {
      await work();
      return this.agent;
    });
    const [wall, cpu] = [spent.wallMilliseconds, spent.agentMilliseconds].map(Math.round);
    console.log(`${this.means.size.nodes} nodes: ${name}: ${wall} ms, CPU time of the agent ${cpu} ms`);
    return spent;
  }
}
