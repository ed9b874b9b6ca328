/**
 * The kubelets and runtimes of all nodes: they start and end the containers of pods by calls of the real allocator, each in a
 * process of its own that may die, and lose some DELs. The search for leaks of each node runs beside them.
 */
import { formatAddress } from "../../../src/ip/address.ts";
import { type Allocator, openAllocator } from "../../../src/ipam/allocator.ts";
import { KeptInUse } from "../../../src/ipam/assign/kept-address.ts";
import { assignedRequest, assignRequest, releaseRequest } from "../../../src/ipam/attachment.ts";
import { findLeaks } from "../../../src/ipam/leaks/find.ts";
import type { HostLinks } from "../../../src/ipam/leaks/host-links.ts";
import { type AssignRequest, guarded } from "../../../src/ipam/request.ts";
import type { KubeClient } from "../../../src/kube/api.ts";
import { annotatedRequests } from "../../../src/plugin/annotated-requests.ts";
import { keepRequestOf, keptUseOf, undoOfKept } from "../../../src/plugin/kept-identity.ts";
import { type Workload, workloadOf } from "../../../src/plugin/workload.ts";
import { collectLeaks } from "../../../src/upkeep/collect-leaks.ts";
import type { DatastoreServer } from "../../datastore/servers.ts";
import type { FaultyNetwork } from "../../faults/network.ts";
import type { ToldContainer } from "../../judge/kept-addresses.ts";
import { SimulatedProcess } from "../../schedule/process.ts";
import type { Random } from "../../schedule/random.ts";
import type { Scheduler } from "../../schedule/scheduler.ts";
import { KEEPING_POOL, planOf, type SimulatedPod, type Workloads } from "./workloads.ts";

export const NETWORK = "net";
const INTERFACE = "eth0";
/** A runtime waits that long for its plugin. */
const CALL_MILLISECONDS = 30_000;
/** A kubelet waits that long after an ADD that failed. */
const RETRY_MILLISECONDS = 20_000;
/** Only whether a host has access to one counts. */
const API = {} as KubeClient;

interface Container {
  readonly id: string;
  readonly pod: SimulatedPod;
  readonly workload: Workload;
  /** Of its addresses. */
  handle: string;
  isKept: boolean;
  state: "adding" | "up" | "failed" | "deleting";
  addresses: readonly string[];
}

export interface RuntimeMeans {
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly network: FaultyNetwork;
  readonly datastore: DatastoreServer;
  readonly workloads: Workloads;
  /** There are controllers, which free the addresses of pods that do not come again. */
  readonly hasControllers: boolean;
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
  /** Not before is another ADD called for them. */
  private readonly retries = new WeakMap<SimulatedPod, number>();
  private count = 0;

  constructor(private readonly means: RuntimeMeans) {}

  get told(): readonly ToldContainer[] {
    const up = [...this.containers.values()].filter(({ state }) => state === "up");
    return up.map(({ id, handle, addresses, isKept }) => ({ id, handle, addresses, isKept }));
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
    // A kubelet hears late of the end of its pod: by then there may be another one of the name elsewhere.
    if (state === "up" && this.isDisturbed && this.means.random.chance(0.5)) return;
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
    else if (this.means.scheduler.now >= (this.retries.get(pod) ?? 0)) this.add(pod);
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
      const { store } = this.connect(process, node);
      const { now, wait, random } = process;
      return collectLeaks(
        store,
        {
          // As if nobody else could have its name: it is not registered here.
          ...{ node, isEmbedded: true, links: this.linksOf(node), earlier: "judge", isDryRun: false },
          openApi: async () => (this.means.hasControllers ? API : undefined),
        },
        {
          ...{ now, wait, random: () => random.next(), machineIdentity: async () => node, warn: () => {} },
          ...{ containerAddresses: async () => undefined, forgetConnections: async () => {} },
        },
      );
    });
  }

  private add(pod: SimulatedPod): void {
    const { workloads, scheduler } = this.means;
    const id = `container-${this.count}`;
    const workload = workloadOf({ networkName: NETWORK, containerId: id, ifname: INTERFACE }, argsOf(pod), pod.node);
    const { handle } = workload;
    const container: Container = { id, pod, workload, handle, isKept: false, state: "adding", addresses: [] };
    this.containers.set(container.id, container);
    void this.call(pod.node, async (process) => {
      const { allocator } = this.connect(process, pod.node);
      const assignment = await this.assign(container, allocator, process);
      const isUndone = this.isDisturbed && this.means.random.chance(0.1);
      if (!isUndone) return assignment;
      const kept = undoOfKept(workload, assignment);
      await allocator.releaseHandle({ ...assignedRequest(workload), ...(kept === undefined ? {} : { kept }) });
      return undefined;
    }).then((assignment) => {
      if (assignment === undefined) this.retries.set(pod, scheduler.now + RETRY_MILLISECONDS);
      if (this.containers.get(container.id) !== container) return;
      container.state = assignment === undefined ? "failed" : "up";
      if (assignment === undefined) return;
      const { addresses } = assignment;
      container.handle = assignment.handle;
      container.isKept = addresses.some(({ kept }) => kept !== undefined);
      container.addresses = addresses.map(({ address }) => formatAddress(address));
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
    const marks = new Set(own.map(({ workload }) => workload.mark));
    const others = { routed: new Map(), marksWithSources: new Set<string>(), attachments: new Map() };
    return { marks, ...others, bootedAt: new Date(0), isHostNamespace: true };
  }

  private delete(container: Container): void {
    const { id, pod, workload, addresses } = container;
    const evidence = { results: addresses, likely: addresses, hadLink: addresses.length > 0 };
    container.state = "deleting";
    void this.call(pod.node, (process) =>
      this.connect(process, pod.node).allocator.releaseHandle({
        ...releaseRequest(workload, evidence),
        kept: keptUseOf(workload, evidence),
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

/** A container that is no pod has its name only. */
function argsOf({ namespace, name }: SimulatedPod) {
  return { podName: name, ...(namespace === "" ? {} : { podNamespace: namespace }) };
}

function requestOf({ workload, pod }: Container): AssignRequest {
  const { kind, requests } = planOf(pod.workload);
  const isPod = kind !== "container";
  const owner = { kind, name: pod.workload.slice(pod.workload.indexOf("/") + 1) };
  const keep = keepRequestOf(workload, { requests, ...(isPod ? { owner } : {}) });
  const ipv4Pools = isPod ? [] : [KEEPING_POOL];
  return {
    ...assignRequest(workload, {
      ...{ ipam: { assignIpv4: true, assignIpv6: isPod, ipv4Pools, ipv6Pools: [] }, requested: [], onLink: [] },
      ...{ args: argsOf(pod), annotated: annotatedRequests(requests) },
      ...(keep === undefined ? {} : { keep }),
    }),
    renewsHeld: true,
  };
}
