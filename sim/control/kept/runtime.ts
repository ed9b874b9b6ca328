/**
 * The kubelets and runtimes of all nodes: they start and end the containers of pods by calls of the real allocator, each in a
 * process of its own that may die, and lose some DELs. The search for leaks of each node runs beside them.
 */
import { formatAddress } from "../../../src/ip/address.ts";
import { type Allocator, openAllocator } from "../../../src/ipam/allocator.ts";
import { KeptInUse } from "../../../src/ipam/assign/kept-address.ts";
import { findLeaks, type HostLinks } from "../../../src/ipam/leaks/find.ts";
import { readNodeRecords } from "../../../src/ipam/leaks/node-records.ts";
import { releaseLeaks } from "../../../src/ipam/leaks/release.ts";
import { formatMark } from "../../../src/ipam/link-mark.ts";
import { type AssignRequest, guarded } from "../../../src/ipam/request.ts";
import { keepHandle } from "../../../src/model/kept-address.ts";
import { STATEFUL_SET } from "../../../src/model/stateful-set.ts";
import { podRequest } from "../../../test/support/ipam.ts";
import type { DatastoreServer } from "../../datastore/servers.ts";
import type { FaultyNetwork } from "../../faults/network.ts";
import type { ToldContainer } from "../../judge/kept-addresses.ts";
import { SimulatedProcess } from "../../schedule/process.ts";
import type { Random } from "../../schedule/random.ts";
import type { Scheduler } from "../../schedule/scheduler.ts";
import type { SimulatedPod, Workloads } from "./workloads.ts";

const NETWORK = "net";
const INTERFACE = "eth0";
/** A runtime waits that long for its plugin. */
const CALL_MILLISECONDS = 30_000;
export const KEEP_SECONDS = 20 * 60;

interface Container {
  readonly id: string;
  /** Of its addresses. */
  readonly handle: string;
  readonly pod: SimulatedPod;
  state: "adding" | "up" | "failed" | "deleting";
  addresses: readonly string[];
}

export interface RuntimeMeans {
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly network: FaultyNetwork;
  readonly datastore: DatastoreServer;
  readonly workloads: Workloads;
  /** By how much the clock of the place is wrong. */
  readonly clockErrors: ReadonlyMap<string, number>;
}

export class Runtime {
  assigned = 0;
  /** How often a pod got an address that had waited for it. */
  again = 0;
  /** Calls die, and DELs are lost. */
  isDisturbed = true;
  /** Why the latest call that failed did. */
  latestFailure = "nothing";
  private readonly containers = new Map<string, Container>();
  private readonly processes = new Map<SimulatedProcess, string>();
  private count = 0;

  constructor(private readonly means: RuntimeMeans) {}

  get told(): readonly ToldContainer[] {
    const up = [...this.containers.values()].filter(({ state }) => state === "up");
    return up.map(({ id, handle, pod, addresses }) => ({ id, handle, addresses, isKept: pod.isKept }));
  }

  /** What the kubelets do next; one that is cut off knows nothing new. */
  step(): void {
    const { workloads, network } = this.means;
    for (const container of [...this.containers.values()]) {
      if (!network.isCut(container.pod.node)) this.endIfUnwanted(container);
    }
    for (const pod of [...workloads.pods.values()]) {
      if (!network.isCut(pod.node)) this.startOrReport(pod);
    }
  }

  private endIfUnwanted(container: Container): void {
    const { pod, state } = container;
    const isWanted = this.means.workloads.pods.get(pod.key) === pod && !pod.isEnding;
    if (state === "adding" || state === "deleting" || (state === "up" && isWanted)) return;
    const isLost = this.isDisturbed && this.means.random.chance(0.2);
    if (isLost) this.containers.delete(container.id);
    else this.delete(container);
  }

  private startOrReport(pod: SimulatedPod): void {
    const own = [...this.containers.values()].filter((each) => each.pod.key === pod.key && each.pod.node === pod.node);
    const up = own.find((each) => each.state === "up" && each.pod === pod);
    pod.addresses = up?.addresses ?? pod.addresses;
    if (own.length > 0) return;
    if (pod.isEnding) this.means.workloads.pods.delete(pod.key);
    else this.add(pod);
  }

  /** A container dies, and its pod gets another one. */
  restartSome(): void {
    const up = [...this.containers.values()].filter(({ state }) => state === "up");
    if (up.length > 0) this.delete(this.means.random.pick(up));
  }

  /** The machine is switched off: nothing of it runs any more. */
  switchOff(node: string): void {
    for (const { id, pod } of [...this.containers.values()]) if (pod.node === node) this.containers.delete(id);
    for (const [process, place] of [...this.processes]) if (place === node) process.kill();
  }

  /** As the agent of the node does every few minutes. */
  search(node: string): void {
    void this.call(node, async (process) => {
      const { store, allocator } = this.connect(process, node);
      const records = await readNodeRecords(store, node);
      const leaks = findLeaks(records.allocations, { links: this.linksOf(node), now: process.now() });
      return releaseLeaks(leaks, records, { store, allocator, forget: async () => {} });
    });
  }

  private add(pod: SimulatedPod): void {
    const { workloads } = this.means;
    const id = `container-${this.count}`;
    const handle = pod.isKept ? keepHandleOf(pod.key) : `${NETWORK}.${id}`;
    const container: Container = { id, handle, pod, state: "adding", addresses: [] };
    this.containers.set(container.id, container);
    void this.call(pod.node, async (process) => {
      const { allocator } = this.connect(process, pod.node);
      const { addresses } = await this.assign(container, allocator, process);
      const isUndone = this.isDisturbed && this.means.random.chance(0.1);
      if (!isUndone) return addresses;
      const forGood = addresses.filter(({ kept }) => kept === "from now on").map(({ address }) => address);
      await allocator.releaseHandle({
        ...ownerOf(container),
        ...(pod.isKept ? { kept: { containerId: container.id, handle, forGood } } : {}),
      });
      return undefined;
    }).then((addresses) => {
      if (this.containers.get(container.id) !== container) return;
      container.state = addresses === undefined ? "failed" : "up";
      container.addresses = addresses?.map(({ address }) => formatAddress(address)) ?? [];
      if (addresses === undefined) return;
      this.assigned += 1;
      if (addresses.some(({ kept }) => kept === "again")) this.again += 1;
      if (workloads.pods.get(pod.key) === pod) pod.addresses = container.addresses;
    });
  }

  private async assign(container: Container, allocator: Allocator, process: SimulatedProcess) {
    const request = requestOf(container);
    try {
      return await allocator.assign(request);
    } catch (failure) {
      if (!(failure instanceof KeptInUse) || failure.uses.some(({ node }) => node !== container.pod.node))
        throw failure;
      // As the plugin does: the host has no link of the former container.
      const leaks = findLeaks(failure.uses, { links: this.linksOf(container.pod.node), now: process.now() });
      if (leaks.length < failure.uses.length) throw failure;
      const { refused } = await allocator.releaseAddresses(failure.uses.map(guarded), "all or none");
      if (refused.length > 0) throw failure;
      return await allocator.assign(request);
    }
  }

  private linksOf(node: string): HostLinks {
    const own = [...this.containers.values()].filter(({ pod }) => pod.node === node);
    const marks = own.map(({ id }) => formatMark({ network: NETWORK, containerId: id, ifname: INTERFACE }));
    return { marks: new Set(marks), routed: new Map(), bootedAt: new Date(0) };
  }

  private delete(container: Container): void {
    const { id, pod, handle } = container;
    // Without a link, the container's name does not lead to what is kept.
    const hadLink = container.addresses.length > 0;
    container.state = "deleting";
    void this.call(pod.node, (process) =>
      this.connect(process, pod.node).allocator.releaseHandle({
        ...ownerOf(container),
        kept: { containerId: id, ...(hadLink && pod.isKept ? { handle } : {}) },
      }),
    ).then((released) => {
      if (released === undefined) container.state = "failed";
      else this.containers.delete(id);
    });
  }

  private connect(process: SimulatedProcess, place: string) {
    const { now, wait, random } = process;
    const store = this.means.datastore.connect(process, place);
    return { store, allocator: openAllocator(store, { now, wait, random: () => random.next() }) };
  }

  /** In a process of its own. `undefined` if it fails or dies. */
  private call<Answer>(
    node: string,
    work: (process: SimulatedProcess) => Promise<Answer>,
  ): Promise<Answer | undefined> {
    const { scheduler, random, clockErrors } = this.means;
    this.count += 1;
    const name = `${node} ${this.count}`;
    const process = new SimulatedProcess(name, scheduler, random.fork(name), clockErrors.get(node));
    if (this.isDisturbed && random.chance(0.15)) process.killAfter(random.below(12));
    const { promise, resolve } = Promise.withResolvers<Answer | undefined>();
    this.processes.set(process, node);
    process.onKill(() => {
      this.processes.delete(process);
      resolve(undefined);
    });
    const cancel = scheduler.after(CALL_MILLISECONDS, () => process.kill());
    work(process)
      .then(resolve, (failure: unknown) => {
        this.latestFailure = `${name}: ${failure}`;
        resolve(undefined);
      })
      .finally(() => {
        this.processes.delete(process);
        cancel();
      });
    return promise;
  }
}

/** `key`: `shop/db-0`. */
export function keepHandleOf(key: string): string {
  const [namespace = "", name = ""] = key.split("/");
  return keepHandle({ network: NETWORK, namespace, identity: `pod/${name}` });
}

function ownerOf({ id, pod }: Container) {
  return { handle: `${NETWORK}.${id}`, network: NETWORK, interface: INTERFACE, node: pod.node };
}

function requestOf({ id, handle, pod }: Container): AssignRequest {
  const { namespace, name, node, set, key, isKept } = pod;
  const request = { ...podRequest(id, { pod: name, node }), attributes: { pod: name, namespace }, renewsHeld: true };
  if (!isKept) return request;
  const keep = {
    ...{ handle, containerId: id, when: "always" as const, seconds: KEEP_SECONDS },
    ...{ owner: `${STATEFUL_SET}/${set}`, title: `pod "${key}"` },
  };
  return { ...request, keep };
}
