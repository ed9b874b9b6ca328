/**
 * An API server that hangs: a write gets no response, and takes effect only later,
 * at any time: when its sender has tried again, has given up, or its container is
 * gone. Every write of an assignment and of a release is delayed, for every number
 * of requests.
 */
import { describe, expect, test } from "bun:test";
import { means, poolChange, request, seed } from "../../test/support/ipam.ts";
import { type Around, type FakeApi, startFakeApi } from "../../test/support/kube-api/fake-api.ts";
import { productMapping } from "../datastore/kube/product-mapping.ts";
import { openKubeStore } from "../datastore/kube/store.ts";
import { PluginError } from "../errors.ts";
import { KubeFailure, unavailable } from "../kube/failure.ts";
import { readAllRecords } from "./all-records.ts";
import { type Allocator, openAllocator } from "./allocator.ts";
import { findProblems } from "./invariants.ts";

const DUAL = [
  { kind: "automatic", family: 4 },
  { kind: "automatic", family: 6 },
] as const;
const POOLS = [poolChange("four", "10.0.0.0/24"), poolChange("six", "fd00::/120")];
const OWNER = { handle: "net.a", node: "node-1" };
const MOST_REQUESTS = 200;

let marks = 0;

class HangingServer {
  readonly api: FakeApi = startFakeApi();
  writes = 0;
  private requests = 0;
  private late: { readonly send: () => unknown; readonly at: number } | undefined;

  /** Delays the write with this number, until so many more requests have come. */
  constructor(
    private readonly delayed: number,
    private readonly requestsLater: number,
  ) {}

  /** As if the sender were killed while it waits. */
  readonly untilKilled: Around = async (sent, send) => {
    if (this.late !== undefined) throw new PluginError("interrupted", "killed");
    return this.around(sent, send);
  };

  readonly around: Around = async ({ method }, send) => {
    this.requests += 1;
    if (this.late !== undefined && this.requests >= this.late.at) this.wake();
    if (method === "GET") return send();
    this.writes += 1;
    if (this.writes !== this.delayed) return send();
    this.late = { send, at: this.requests + this.requestsLater };
    const diagnosis = { stage: "request", effect: "unknown", cure: "wait", advice: "" } as const;
    throw unavailable(new KubeFailure(diagnosis, "no response"), { server: "fake", kind: "datastore-unavailable" });
  };

  /** Executes the delayed write; whether there was one. */
  wake(): boolean {
    const { late } = this;
    this.late = undefined;
    late?.send();
    return late !== undefined;
  }

  openStore(around?: Around) {
    const client = this.api.connect(around);
    return openKubeStore({ api: client, mappings: productMapping(() => String(++marks)), close: () => client.close() });
  }
}

interface Story {
  readonly title: string;
  /** Whether a block of the node exists before. */
  readonly isFirst: boolean;
  /** What is delayed. */
  readonly run: (allocator: Allocator) => Promise<unknown>;
  /** What others, with the same API server, do next. */
  readonly afterwards: (allocator: Allocator) => Promise<unknown>;
}

const add = (allocator: Allocator) => allocator.assign(request("net.a", { addressRequests: DUAL }));
const del = (allocator: Allocator) => allocator.releaseHandle(OWNER);
const another = (allocator: Allocator) => allocator.assign(request("net.b", { addressRequests: DUAL }));

const STORIES: readonly Story[] = [
  { title: "an assignment, then its release", isFirst: false, run: add, afterwards: del },
  { title: "the first assignment of a node, then its release", isFirst: true, run: add, afterwards: del },
  {
    title: "an assignment and its release, then another assignment",
    isFirst: false,
    run: async (allocator) => {
      await add(allocator);
      await del(allocator);
    },
    afterwards: async (allocator) => {
      await del(allocator);
      await another(allocator);
    },
  },
];

const SENDERS = ["tries again", "is killed"] as const;
const CASES = SENDERS.flatMap((sender) => STORIES.map((story) => ({ ...story, sender })));

describe("a write that takes effect late", () => {
  for (const { title, isFirst, run, afterwards, sender } of CASES) {
    test(`corrupts nothing and keeps no address if its sender ${sender}: ${title}`, async () => {
      let delays = 0;
      for (let write = 1; ; write++) {
        let isPassed = false;
        for (let later = 1; later <= MOST_REQUESTS; later++) {
          const server = new HangingServer(write, later);
          const plain = server.openStore();
          await seed(plain, ...POOLS);
          if (!isFirst) await another(await openAllocator(plain, means()));
          const around = sender === "is killed" ? server.untilKilled : server.around;
          await run(await openAllocator(server.openStore(around), means())).catch(() => {});
          await afterwards(await openAllocator(server.openStore(server.around), means()));
          isPassed = server.writes < write;
          const isLast = server.wake();
          const world = await readAllRecords(server.openStore());
          const corrupt = findProblems(world).filter(({ severity }) => severity === "corrupt");
          const kept = world.blocks.flatMap(({ attributes }) =>
            attributes.filter(({ handleId }) => handleId === "net.a"),
          );
          expect({ write, later, corrupt, kept }).toEqual({ write, later, corrupt: [], kept: [] });
          delays += 1;
          if (isPassed || isLast) break;
        }
        if (isPassed) break;
      }
      expect(delays).toBeGreaterThan(20);
    });
  }
});
