/**
 * Many agents in one process on one memory datastore: of each node the replicas, the compiler of policy and the planner of routes,
 * as the agent combines them. The kernel is left out: what is counted is what the datastore sees.
 */
import { KINDS_OF_PARTS, networkKinds } from "../../src/agent/network/followed-network.ts";
import type { MemoryTable } from "../../src/datastore/memory/table.ts";
import { startReplica } from "../../src/datastore/replica.ts";
import { formatAddress } from "../../src/ip/address.ts";
import { openAllocator } from "../../src/ipam/allocator.ts";
import { openHintMemory } from "../../src/ipam/hint-file.ts";
import type { HintStore } from "../../src/ipam/hints.ts";
import { PolicyCompiler } from "../../src/policy/compile/compiler.ts";
import { blockFacts, FollowedSettings, ROUTED_BLOCK_KINDS, resourceFacts } from "../../src/routing/inputs.ts";
import { RoutePlanner } from "../../src/routing/planner.ts";
import { applicationOf, type ClusterSize, nodeName, podRecord } from "./cluster-records.ts";
import { CountedStore, type StoreCounts } from "./counted-store.ts";

export interface ModelAgent {
  readonly node: number;
  readonly counts: StoreCounts;
  /** Elements and chains that the kernel would have got. */
  readonly kernelChanges: number;
  /** The routes to the blocks of other nodes. */
  readonly routes: number;
  /** Whether all that the table has is compiled and planned. */
  isCurrent(): boolean;
  stop(): Promise<void>;
}

export function startModelAgent(table: MemoryTable, node: number): ModelAgent {
  const store = new CountedStore(table);
  const name = nodeName(node);
  const ending = new AbortController();
  const { signal } = ending;
  const replica = startReplica(store, networkKinds(name), { signal });
  const blocks = startReplica(store, ROUTED_BLOCK_KINDS, { signal });
  const compiler = new PolicyCompiler({ node: name });
  const planner = new RoutePlanner(name, { isEnabled: true, isBgpEnabled: true });
  const settings = new FollowedSettings(name);
  const seen = { policy: "", resources: "", blocks: "" };
  let kernelChanges = 0;

  const followPolicy = async () => {
    for await (const { changes, snapshot } of replica.part(KINDS_OF_PARTS.policy).updates()) {
      compiler.update(changes);
      const { chains, elements } = compiler.takeDelta();
      kernelChanges += chains.size;
      for (const [, { added, removed }] of elements) kernelChanges += added.length + removed.length;
      seen.policy = snapshot.endpoints.revision;
    }
  };
  const followResources = async () => {
    for await (const { changes, snapshot } of replica.part(KINDS_OF_PARTS.routes).updates()) {
      planner.update({ ...settings.facts(changes.configurations), ...resourceFacts(changes, name) });
      seen.resources = snapshot.endpoints.revision;
    }
  };
  const followBlocks = async () => {
    for await (const { changes, snapshot } of blocks.updates()) {
      planner.update(blockFacts(changes));
      seen.blocks = snapshot.blocks4.revision;
    }
  };
  const loops = [followPolicy(), followResources(), followBlocks()];
  // An update without news for a consumer is not delivered: then the consumer has seen all that concerns it.
  const hasSeen = (revision: string, listed: string | undefined) => listed === table.revision && revision !== "";
  return {
    node,
    get counts() {
      return store.counts;
    },
    get kernelChanges() {
      return kernelChanges;
    },
    get routes() {
      return planner.plan.routes.size;
    },
    isCurrent: () =>
      hasSeen(seen.policy, replica.snapshot?.endpoints.revision) &&
      hasSeen(seen.resources, replica.snapshot?.endpoints.revision) &&
      hasSeen(seen.blocks, blocks.snapshot?.blocks4.revision),
    async stop() {
      ending.abort();
      await Promise.all([...loops, replica.ended, blocks.ended]);
      await store.close();
    },
  };
}

/** The runtime of a node: its pods get addresses from the real allocator, in one commit with their endpoints. */
export class ModelRuntime {
  private readonly hints: HintStore = openHintMemory();
  /** The calls of a host take turns. */
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly table: MemoryTable,
    private readonly node: number,
    private readonly size: ClusterSize,
    private readonly random: () => number,
  ) {}

  async add(pod: number): Promise<StoreCounts> {
    const store = new CountedStore(this.table);
    const application = applicationOf(this.node, pod, this.size);
    const { key } = podRecord(this.node, pod, application);
    await this.allocator(store).assign(
      {
        handle: this.handle(pod),
        node: nodeName(this.node),
        attributes: { node: nodeName(this.node), namespace: "shop", pod: `pod-${this.node}-${pod}` },
        intendedUse: "Workload",
        addressRequests: [{ kind: "automatic", family: 4 }],
      },
      {
        wanted: [{ kind: "key", key }],
        changes: (_answers, { addresses }) => {
          const text = addresses.map(({ address }) => formatAddress(address)).join();
          return [{ kind: "create", ...podRecord(this.node, pod, application, text) }];
        },
      },
    );
    return store.counts;
  }

  async remove(pod: number): Promise<StoreCounts> {
    const store = new CountedStore(this.table);
    const { key } = podRecord(this.node, pod, applicationOf(this.node, pod, this.size));
    await this.allocator(store).releaseHandle(
      { handle: this.handle(pod), node: nodeName(this.node) },
      {
        order: "before",
        wanted: [{ kind: "key", key }],
        changes: ([found]) => (found ?? []).map(({ revision }) => ({ kind: "delete", key, revision })),
      },
    );
    return store.counts;
  }

  private handle(pod: number): string {
    return `pods.${nodeName(this.node)}-${pod}`;
  }

  private allocator(store: CountedStore) {
    const wait = () => new Promise<void>((resolve) => setImmediate(resolve));
    const turn = <Result>(work: (leave: () => void) => Promise<Result>): Promise<Result> => {
      const mine = this.last.then(() => work(() => {}));
      this.last = mine.catch(() => {});
      return mine;
    };
    return openAllocator(store, { now: () => new Date(0), random: this.random, wait, turn, hints: this.hints });
  }
}
