/**
 * Pods that come while a cluster is upgraded: as soon as their node has the plugin of this release, each asks for an address
 * of the present storage every few seconds until it has one, as a runtime does, and may be killed in the middle. Nobody may
 * get an address of a pod that was there before.
 */
import { identity } from "../../../src/identity.ts";
import { formatAddress } from "../../../src/ip/address.ts";
import { readAllRecords } from "../../../src/ipam/all-records.ts";
import { openAllocator } from "../../../src/ipam/allocator.ts";
import { addressAt, attributesOf } from "../../../src/ipam/block.ts";
import { findProblems } from "../../../src/ipam/invariants.ts";
import { VERSION } from "../../../src/version.ts";
import { request } from "../../../test/support/ipam.ts";
import { FORMER_PODS, FORMER_TUNNELS } from "../../../test/support/older-cluster/resources.ts";
import type { SimulatedApi } from "../../datastore/simulated-api.ts";
import { SimulatedProcess } from "../../schedule/process.ts";
import type { Random } from "../../schedule/random.ts";
import type { Scheduler } from "../../schedule/scheduler.ts";
import { NODES } from "./older-cluster.ts";

interface AgentPod {
  readonly spec: {
    readonly nodeName?: string;
    readonly containers: readonly { readonly name: string; readonly image?: string }[];
  };
  readonly status?: { readonly phase?: string };
}

const LONGEST_PAUSE = 10_000;
/** A runtime ends a call that takes longer. */
const PATIENCE = 120_000;
const LATEST_KILL = 60;

export class AddressUsers {
  /** By handle. */
  readonly assigned = new Map<string, string>();
  private pods = 0;
  private isEnded = false;

  constructor(
    private readonly api: SimulatedApi,
    private readonly scheduler: Scheduler,
    private readonly random: Random,
  ) {
    this.comeLater();
  }

  end(): void {
    this.isEnded = true;
  }

  private comeLater(): void {
    this.scheduler.after(this.random.below(LONGEST_PAUSE), () => {
      if (this.isEnded) return;
      this.pods += 1;
      const pod = { name: `new-${this.pods}`, namespace: "shop", node: this.random.pick(NODES) };
      const spec = { nodeName: pod.node, containers: [{ name: "main", image: "main:1" }] };
      const metadata = { name: pod.name, namespace: pod.namespace };
      this.api.create(`/api/v1/namespaces/${pod.namespace}/pods`, {
        apiVersion: "v1",
        kind: "Pod",
        metadata,
        spec,
      } as never);
      this.attach(pod, 1);
      this.comeLater();
    });
  }

  private attach(
    pod: { readonly name: string; readonly namespace: string; readonly node: string },
    attempt: number,
  ): void {
    if (!this.hasPresentPlugin(pod.node)) {
      this.scheduler.after(LONGEST_PAUSE, () => this.attach(pod, attempt));
      return;
    }
    const random = this.random.fork(`${pod.name} ${attempt}`);
    const process = new SimulatedProcess(`node-${pod.node}`, this.scheduler, random);
    const allocator = openAllocator(this.api.connectStore(process, process.name), {
      now: process.now,
      random: () => random.next(),
      wait: (milliseconds) => process.wait(milliseconds),
    });
    const again = () => {
      if (process.isAlive) process.kill();
      if (!this.isEnded) this.scheduler.after(this.random.below(LONGEST_PAUSE), () => this.attach(pod, attempt + 1));
    };
    const isLate = this.scheduler.after(PATIENCE, again);
    const handle = `k8s-pod-network.${pod.name}`;
    const { name, namespace, node } = pod;
    const wanted = request(handle, {
      network: "k8s-pod-network",
      interface: "eth0",
      node,
      attributes: { pod: name, namespace },
    });
    if (random.chance(0.2)) process.killAfter(random.below(LATEST_KILL));
    allocator.assign(wanted).then(
      ({ addresses }) => {
        isLate();
        this.assigned.set(handle, addresses.map(({ address }) => formatAddress(address)).join(" "));
      },
      () => {
        isLate();
        again();
      },
    );
  }

  /** The agent of a node installs the plugin of its release. */
  private hasPresentPlugin(node: string): boolean {
    return this.api.list("/api/v1/namespaces/kube-system/pods").some((pod) => {
      const { spec, status } = pod as unknown as AgentPod;
      const isPresent = spec.containers.some(
        ({ name, image }) => name === identity.nodeAgent && image?.endsWith(`:${VERSION}`),
      );
      return isPresent && spec.nodeName === node && status?.phase === "Running";
    });
  }

  /** What is wrong with the addresses in the present storage. */
  async problems(): Promise<readonly string[]> {
    const world = await readAllRecords(this.api.userStore);
    const corrupt = findProblems(world).filter(({ severity }) => severity === "corrupt");
    const holders = new Map<string, string[]>();
    for (const block of world.blocks) {
      block.allocations.forEach((index, ordinal) => {
        if (index === undefined) return;
        const address = formatAddress(addressAt(block, ordinal));
        holders.set(address, [...(holders.get(address) ?? []), attributesOf(block, ordinal)?.handleId ?? "nobody"]);
      });
    }
    const wanted = new Map([
      ...FORMER_PODS.map(({ address, container }) => [address, `k8s-pod-network.${container}`] as const),
      ...Object.entries(FORMER_TUNNELS).map(([node, address]) => [address, `ipip-tunnel-addr-${node}`] as const),
      ...[...this.assigned].map(([handle, address]) => [address, handle] as const),
    ]);
    const lost = [...wanted].filter(([address, handle]) => holders.get(address)?.join() !== handle);
    return [
      ...corrupt.map((problem) => JSON.stringify(problem)),
      ...lost.map(([address, handle]) => `${address} of ${handle} is held by ${holders.get(address) ?? "nobody"}`),
      ...[...this.assigned]
        .filter(([handle, address]) => wanted.get(address) !== handle)
        .map(([handle]) => `${handle} has an address of another`),
    ];
  }
}
