/**
 * Allocators that remember and allocators that do not, on one datastore, in
 * random order and at once, while an administrator changes what they rest on.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  configurationChange,
  means,
  nodeChange,
  poolChange,
  request,
  reservationChange,
  seed,
  textsOf,
} from "../../test/support/ipam.ts";
import { openVerifyingMemory } from "../../test/support/verifying-memory.ts";
import type { Datastore } from "../datastore/datastore.ts";
import { cachingDatastore } from "../datastore/etcd/caching-datastore.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { MemoryTable } from "../datastore/memory/table.ts";
import { PluginError } from "../errors.ts";
import { readAllRecords } from "./all-records.ts";
import { type Allocator, openAllocator } from "./allocator.ts";
import { findProblems } from "./invariants.ts";

const NODES = ["node-1", "node-2"];
/** Of each pool the first half, as the administrator reserves it. */
const HALVES = ["10.0.0.0/29", "10.0.1.0/29"];
const isReserved = (text: string) => HALVES.some((half) => text.startsWith(half.slice(0, 7)) && lastOf(text) < 8);
const lastOf = (text: string) => Number(text.split(".")[3]);

type Step =
  | { readonly kind: "burst"; readonly calls: readonly { readonly actor: number; readonly container: number }[] }
  | { readonly kind: "pool"; readonly pool: 0 | 1; readonly disabled: boolean }
  | { readonly kind: "reservation"; readonly reserved: boolean }
  | { readonly kind: "strict"; readonly strictAffinity: boolean };

const call = fc.record({ actor: fc.nat({ max: 5 }), container: fc.nat({ max: 15 }) });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant("burst"), calls: fc.array(call, { minLength: 1, maxLength: 3 }) }),
  },
  fc.record({ kind: fc.constant("pool"), pool: fc.constantFrom(0, 1), disabled: fc.boolean() }),
  fc.record({ kind: fc.constant("reservation"), reserved: fc.boolean() }),
  fc.record({ kind: fc.constant("strict"), strictAffinity: fc.boolean() }),
);

class Walk {
  private readonly table = new MemoryTable();
  private readonly judge = openMemory(this.table);
  /** On each node an agent that remembers, twice as busy as the processes that do not. */
  private readonly actors: readonly { readonly node: string; readonly allocator: Allocator }[];
  private readonly held = new Map<string, readonly string[]>();
  private readonly disabled = [false, false];
  private reserved = false;
  proven = 0;

  constructor() {
    this.actors = NODES.flatMap((node) => {
      const agent = this.remembering();
      return [agent, agent, jittering(openVerifyingMemory(this.table))].map((store) => ({
        node,
        allocator: openAllocator(store, means({ random: Math.random })),
      }));
    });
  }

  async begin(): Promise<void> {
    const pools = [0, 1].map((pool) => this.poolChange(pool, false));
    await seed(this.judge, ...NODES.map((node) => nodeChange(node)), ...pools);
  }

  async take(step: Step): Promise<void> {
    switch (step.kind) {
      case "burst":
        return this.burst(step.calls);
      case "pool":
        this.disabled[step.pool] = step.disabled;
        return seed(this.judge, this.poolChange(step.pool, step.disabled));
      case "reservation":
        this.reserved = step.reserved;
        return seed(this.judge, reservationChange("half", step.reserved ? HALVES : ["192.0.2.0/24"]));
      case "strict":
        return seed(this.judge, configurationChange({ strictAffinity: step.strictAffinity }));
    }
  }

  /** Each container once: what is not held is added, what is held is taken away. */
  private async burst(calls: readonly { readonly actor: number; readonly container: number }[]): Promise<void> {
    const once = [...new Map(calls.map((each) => [each.container, each])).values()];
    await Promise.all(
      once.map(({ actor, container }) => {
        const handle = `net.${container}`;
        return this.held.has(handle) ? this.release(actor, handle) : this.assign(actor, handle);
      }),
    );
    const all = [...this.held.values()].flat();
    expect(new Set(all).size).toBe(all.length);
    expect(findProblems(await readAllRecords(this.judge))).toEqual([]);
  }

  private async assign(actor: number, handle: string): Promise<void> {
    const { allocator, node } = this.actors[actor] ?? fail();
    try {
      const texts = textsOf(await allocator.assign(request(handle, { node })));
      this.held.set(handle, texts);
      for (const text of texts) {
        expect(this.disabled[text.startsWith("10.0.0.") ? 0 : 1]).toBe(false);
        expect(this.reserved && isReserved(text)).toBe(false);
      }
    } catch (error) {
      if (!(error instanceof PluginError) || error.kind !== "addresses-exhausted") throw error;
    }
  }

  private async release(actor: number, handle: string): Promise<void> {
    const { allocator, node } = this.actors[actor] ?? fail();
    const onAnyNode = this.held.get(handle) ?? [];
    // Whoever else gets the address meanwhile gets it rightly.
    this.held.delete(handle);
    expect(await allocator.releaseHandle({ handle, node, onAnyNode })).toHaveLength(onAnyNode.length);
  }

  private remembering(): Datastore {
    const server = jittering(openVerifyingMemory(this.table));
    const { commitIfUnchanged } = server;
    server.commitIfUnchanged = async (...given) => {
      const proven = await commitIfUnchanged.call(server, ...given);
      if (proven.ok) this.proven += 1;
      return proven;
    };
    return cachingDatastore(server, () => 0);
  }

  private poolChange(pool: number, disabled: boolean) {
    return poolChange(`pool-${pool}`, `10.0.${pool}.0/28`, { blockSize: 29, disabled });
  }
}

/** The same store, whose requests and answers take their time. */
function jittering(store: ReturnType<typeof openVerifyingMemory>): ReturnType<typeof openVerifyingMemory> {
  const pause = async () => {
    for (let turns = Math.floor(Math.random() * 4); turns > 0; turns--) await new Promise(setImmediate);
  };
  const late = async <Answer>(ask: () => Promise<Answer>): Promise<Answer> => {
    await pause();
    const answer = await ask();
    await pause();
    return answer;
  };
  const { read, commit, commitIfUnchanged } = store;
  return Object.assign(store, {
    read: (...given: Parameters<typeof read>) => late(() => read.apply(store, given)),
    commit: (...given: Parameters<typeof commit>) => late(() => commit.apply(store, given)),
    commitIfUnchanged: (...given: Parameters<typeof commitIfUnchanged>) =>
      late(() => commitIfUnchanged.apply(store, given)),
  });
}

function fail(): never {
  throw new Error("no such actor");
}

describe("allocators that guess, among others and while the rules change", () => {
  test("never give an address twice, nor against the rules, and leave records that agree", async () => {
    let proven = 0;
    const walk = async (steps: readonly Step[]) => {
      const taken = new Walk();
      await taken.begin();
      for (const each of steps) await taken.take(each);
      proven += taken.proven;
    };
    const steps = fc.array(step, { minLength: 30, maxLength: 60 });
    await fc.assert(fc.asyncProperty(steps, walk), { numRuns: 60, endOnFailure: true });

    expect(proven).toBeGreaterThan(100);
  }, 60_000);
});
