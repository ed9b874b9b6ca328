/**
 * Allocators of several nodes that contend for few addresses on one datastore, while the network, the server and the
 * allocators themselves fail in every way there is. After each event no address is held twice, the records are sound, and
 * whoever was told an address holds it.
 */
import { formatAddress } from "../../src/ip/address.ts";
import { openAllocator } from "../../src/ipam/allocator.ts";
import { findProblems } from "../../src/ipam/invariants.ts";
import { podRequest, poolChange, seed as seedRecords } from "../../test/support/ipam.ts";
import { FaultyNetwork } from "../faults/network.ts";
import { type IpamState, ipamReader } from "../judge/ipam-state.ts";
import { loadModules } from "../schedule/load-modules.ts";
import { SimulatedProcess } from "../schedule/process.ts";
import { Random } from "../schedule/random.ts";
import { Scheduler } from "../schedule/scheduler.ts";
import { Follower } from "./follower.ts";
import { type DatastoreKind, type DatastoreServer, startDatastore } from "./servers.ts";

const NODES = ["node-1", "node-2", "node-3"];
const OPERATIONS = 60;
/** A runtime waits that long for its plugin. */
const CALL_MILLISECONDS = 30_000;
/** A replica trusts a silent watch that long. */
const LONGEST_SILENCE_MILLISECONDS = 20 * 60_000;

export interface AllocatorsOutcome {
  readonly violations: readonly string[];
  readonly steps: number;
  /** The same for the same seed. */
  readonly trace: number;
  readonly assigned: number;
  readonly released: number;
  /** Addresses that only the search for leaks can find: a request of a dead process arrived late. */
  readonly leaked: number;
}

interface Container {
  readonly id: string;
  readonly node: string;
  state: "adding" | "up" | "failed" | "deleting";
  addresses: readonly string[];
}

export async function runAllocators(seed: number, kind: DatastoreKind): Promise<AllocatorsOutcome> {
  const scenario = new AllocatorsScenario(seed, kind);
  return scenario.run();
}

class AllocatorsScenario {
  private readonly random: Random;
  private readonly scheduler: Scheduler;
  private readonly network: FaultyNetwork;
  private readonly datastore: DatastoreServer;
  private readonly followers: readonly Follower[];
  private readonly readState = ipamReader();
  private checked: IpamState | undefined;
  private readonly containers = new Map<string, Container>();
  private readonly violations = new Set<string>();
  private calls = 0;
  private assigned = 0;
  private released = 0;
  private trace = 0;

  constructor(
    seed: number,
    private readonly kind: DatastoreKind,
  ) {
    const random = new Random(seed);
    this.random = random.fork("choices");
    this.scheduler = new Scheduler(random.fork("order"));
    this.scheduler.onEvent = (time, label) => {
      this.trace = Bun.hash.murmur32v3(`${time} ${label} ${this.datastore.records.revision}`, this.trace);
    };
    this.network = new FaultyNetwork(this.scheduler, random.fork("network"));
    this.datastore = startDatastore(kind, this.network);
    const { scheduler, datastore } = this;
    this.followers = NODES.map(
      (place) => new Follower({ place, scheduler, random: random.fork("followers"), connect: datastore.connect }),
    );
  }

  async run(): Promise<AllocatorsOutcome> {
    const { scheduler, random } = this;
    await loadModules();
    await seedRecords(
      this.datastore.user,
      poolChange("blue", "10.0.0.0/27", { blockSize: 29 }),
      poolChange("six", "fd00::/120", { blockSize: 125 }),
    );
    for (const follower of this.followers) follower.start();
    for (let count = 0; count < OPERATIONS; count++) {
      await scheduler.runUntil(scheduler.now + random.below(4_000), () => this.check());
      this.act();
    }
    this.network.healAll();
    for (let round = 0; round < 20 && this.containers.size > 0; round++) {
      await scheduler.runUntil(scheduler.now + 2 * CALL_MILLISECONDS, () => this.check());
      for (const container of this.containers.values()) if (container.state !== "deleting") this.delete(container);
    }
    if (this.containers.size > 0) this.violations.add(`${this.containers.size} containers cannot be deleted`);
    await scheduler.runUntil(scheduler.now + LONGEST_SILENCE_MILLISECONDS, () => this.check());
    for (const follower of this.followers) {
      for (const difference of follower.differences(this.datastore.records)) this.violations.add(difference);
    }
    const { assigned, released, trace } = this;
    const leaked = this.readState(this.datastore.records).holdings.size;
    return { violations: [...this.violations], steps: scheduler.steps, trace, assigned, released, leaked };
  }

  private act(): void {
    const { random, network, datastore } = this;
    const { server } = datastore;
    const container = this.containers.size > 0 ? random.pick([...this.containers.values()]) : undefined;
    const place = random.pick(NODES);
    const acts: readonly (readonly [weight: number, act: () => void])[] = [
      [24, () => this.add({ id: `container-${this.calls}`, node: place, state: "adding", addresses: [] })],
      [2, () => container?.state === "failed" && this.add(container)],
      [10, () => container && container.state !== "deleting" && this.delete(container)],
      [1, () => network.cut(place)],
      [4, () => network.healAll()],
      [1, () => network.heal(place)],
      [2, () => network.disturb(random, 0.3)],
      [1, () => server.restart(random.below(20_000))],
      [1, () => server.compact()],
      [1, () => server.hang(random.below(40_000))],
      [1, () => server.stallWatches(place, random.below(60_000))],
      [1, () => server.breakWatches(place)],
      [1, () => server.loseWatches(place)],
      [1, () => random.pick(this.followers).start()],
    ];
    let left = random.below(acts.reduce((sum, [weight]) => sum + weight, 0));
    for (const [weight, act] of acts) {
      if (left < weight) {
        act();
        return;
      }
      left -= weight;
    }
  }

  private add(container: Container): void {
    container.state = "adding";
    this.containers.set(container.id, container);
    void this.call(container.node, async (process) => {
      const { addresses } = await this.allocator(process, container.node).assign(
        podRequest(container.id, { pod: container.id, node: container.node }),
      );
      return addresses.map(({ address }) => formatAddress(address));
    }).then((addresses) => {
      if (container.state !== "adding") return;
      container.state = addresses === undefined ? "failed" : "up";
      container.addresses = addresses ?? [];
      if (addresses !== undefined) this.assigned += 1;
    });
  }

  private delete(container: Container): void {
    // A runtime that deletes waits for no ADD of the same container.
    if (container.state === "adding") return;
    container.state = "deleting";
    const { id, node } = container;
    void this.call(node, (process) =>
      this.allocator(process, node).releaseHandle({ handle: `net.${id}`, network: "net", interface: "eth0", node }),
    ).then((released) => {
      if (released === undefined) {
        container.state = "failed";
        return;
      }
      this.containers.delete(id);
      this.released += 1;
    });
  }

  private allocator(process: SimulatedProcess, place: string) {
    const { now, wait, random } = process;
    const store = this.datastore.connect(process, place);
    return openAllocator(store, { now, wait, random: () => random.next() });
  }

  /** In a process of its own. `undefined` if it fails or dies. */
  private call<Answer>(
    node: string,
    work: (process: SimulatedProcess) => Promise<Answer>,
  ): Promise<Answer | undefined> {
    this.calls += 1;
    const process = new SimulatedProcess(`${node} ${this.calls}`, this.scheduler, this.random.fork(`${this.calls}`));
    if (this.random.chance(0.3)) process.killAfter(this.random.below(12));
    const { promise, resolve } = Promise.withResolvers<Answer | undefined>();
    process.onKill(() => resolve(undefined));
    const cancel = this.scheduler.after(CALL_MILLISECONDS, () => process.kill());
    work(process)
      .then(resolve, () => resolve(undefined))
      .finally(cancel);
    return promise;
  }

  private check(): void {
    const state = this.readState(this.datastore.records);
    if (state !== this.checked) {
      const corrupt = findProblems(state).filter(({ severity }) => severity === "corrupt");
      for (const { message } of corrupt) this.violations.add(`${this.scheduler.now}: ${message}`);
    }
    this.checked = state;
    for (const { id, state: of, addresses } of this.containers.values()) {
      if (of !== "up") continue;
      for (const address of addresses) {
        const handle = state.holdings.get(address)?.handle;
        if (handle !== `net.${id}`) this.violations.add(`${address} of ${id} belongs to ${handle} (${this.kind})`);
      }
    }
  }
}
