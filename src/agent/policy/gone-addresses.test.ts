import { describe, expect, test } from "bun:test";
import { address, prefix } from "../../../test/support/ipam.ts";
import { pollUntil } from "../../../test/support/poll.ts";
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import { addressBytes, formatAddress } from "../../ip/address.ts";
import { prefixElements } from "../../linux/nftables/intervals.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import type { SetReference } from "../../policy/effective-rule.ts";
import type { DesiredSet } from "../../policy/table/desired-table.ts";
import { setName } from "../../policy/table/names.ts";
import { GoneAddresses } from "./gone-addresses.ts";

const WEB = { kind: "selected", selector: "app == 'web'" } as const;

function endpoint(...texts: readonly string[]): WorkloadEndpoint {
  const ipNetworks = texts.map((text) => `${text}/${text.includes(":") ? 128 : 32}`);
  return workloadEndpoint.make({ name: "e", namespace: "shop" }, { ipNetworks });
}

function networksOf(reference: SetReference, networks: readonly string[]): [string, DesiredSet] {
  const name = setName(reference, 4, "prefixes");
  const elements = prefixElements(networks.map(prefix));
  const set = { name, key: ["ipv4_addr" as const], holdsIntervals: true };
  return [name, { set, elements: new Map(elements.map((element, index) => [String(index), element])) }];
}

/** Follows endpoints as the agent does; the loop waits until the test lets it go on. */
function follow() {
  const endpoints = new Map<string, WorkloadEndpoint>();
  const forgotten: string[][] = [];
  const failures: Error[] = [];
  const waits: { readonly milliseconds: number; readonly resolve: () => void }[] = [];
  const gone = new GoneAddresses({
    forget: async (addresses) => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      forgotten.push(addresses.map(formatAddress));
    },
    report: () => {},
    wait: (milliseconds, signal) =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve();
        signal.addEventListener("abort", () => resolve());
        waits.push({ milliseconds, resolve });
      }),
  });
  const stopping = new AbortController();
  const ended = gone.run(stopping.signal);
  return {
    forgotten,
    /** Of the next lists of the connections. */
    failures,
    /**
     * At the start: these addresses left the sets while no agent ran, of these only the data changed, and these are the
     * networks of the same selector.
     */
    adopt(left: readonly string[], same: readonly string[] = [], networks: readonly string[] = []) {
      const elementsOf = (texts: readonly string[]) => texts.map((text) => ({ key: addressBytes(address(text)) }));
      const changes = { removed: elementsOf([...left, ...same]), added: elementsOf(same) };
      const delta = { chains: new Map(), sets: new Map(), elements: new Map([[setName(WEB, 4), changes]]) };
      gone.adopted(delta, { chains: new Map(), sets: new Map([networksOf(WEB, networks)]) });
    },
    deleteSet() {
      gone.changed({ chains: new Map(), sets: new Map([[setName(WEB, 4), "deleted" as const]]), elements: new Map() });
    },
    /** `left`: the addresses that leave a set of the kernel with this change. */
    change(left: readonly string[], ...changed: readonly (readonly [string, WorkloadEndpoint | undefined])[]) {
      const removed = (family: 4 | 6) =>
        left.flatMap((text) => (address(text).family === family ? [{ key: addressBytes(address(text)) }] : []));
      const elements = new Map(
        [4 as const, 6 as const].map((family) => [setName(WEB, family), { removed: removed(family), added: [] }]),
      );
      gone.changed({ chains: new Map(), sets: new Map(), elements });
      const changes = changed.map(([key, value]): RecordChange<WorkloadEndpoint> => {
        const previous = endpoints.get(key);
        if (value === undefined) endpoints.delete(key);
        else endpoints.set(key, value);
        return value === undefined ? { kind: "delete", key, previous } : { kind: "put", key, value, previous };
      });
      gone.update(changes);
    },
    async passSecond() {
      await pollUntil(() => waits.some(({ milliseconds }) => milliseconds === 1_000), "the loop to wait");
      for (const { resolve } of waits.splice(0)) resolve();
    },
    settled: () => new Promise((resolve) => setImmediate(resolve)),
    async end() {
      stopping.abort();
      await ended;
    },
  };
}

describe("GoneAddresses", () => {
  test("forgets the addresses of an endpoint that goes, if they were in a set", async () => {
    const site = follow();
    site.change([], ["a", endpoint("10.0.0.1", "fd00::1")], ["b", endpoint("10.0.0.2")]);
    site.change(["10.0.0.1", "fd00::1"], ["a", undefined]);
    await site.settled();
    expect(site.forgotten).toEqual([["10.0.0.1", "fd00::1"]]);

    await site.passSecond();
    site.change([], ["b", undefined]);
    await site.settled();
    expect(site.forgotten).toHaveLength(1);
    await site.end();
  });

  test("keeps those of an endpoint whose labels change, and those of network sets", async () => {
    const site = follow();
    site.change([], ["a", endpoint("10.0.0.1")]);
    site.change(["10.0.0.1"], ["a", endpoint("10.0.0.1")]);
    site.change(["192.0.2.1"]);
    await site.settled();

    expect(site.forgotten).toEqual([]);
    await site.end();
  });

  test("forgets those of an endpoint that goes after its labels had changed", async () => {
    const site = follow();
    site.change([], ["a", endpoint("10.0.0.1")]);
    site.change(["10.0.0.1"], ["a", endpoint("10.0.0.1")]);
    site.change([], ["b", endpoint("10.0.0.2")]);
    await site.settled();
    expect(site.forgotten).toEqual([]);
    site.change([], ["a", undefined]);
    await site.settled();

    expect(site.forgotten).toEqual([["10.0.0.1"]]);
    await site.end();
  });

  test("forgets those of an endpoint that goes together with a set, which may have had its address", async () => {
    const site = follow();
    site.change([], ["a", endpoint("10.0.0.1")], ["b", endpoint("10.0.0.2")], ["c", endpoint("10.0.0.3")]);
    site.deleteSet();
    site.change([], ["a", undefined]);
    await site.settled();
    expect(site.forgotten).toEqual([["10.0.0.1"]]);
    await site.passSecond();
    site.change([], ["b", undefined]);
    await site.settled();

    expect(site.forgotten).toEqual([["10.0.0.1"]]);
    await site.end();
  });

  test("forgets those that left the sets while no agent ran, whoever has the addresses now", async () => {
    const site = follow();
    site.adopt(["10.0.0.1", "10.0.0.2"], ["10.0.0.3"]);
    site.change([], ["b", endpoint("10.0.0.2")], ["c", endpoint("10.0.0.3")]);
    await site.settled();

    expect(site.forgotten).toEqual([["10.0.0.1", "10.0.0.2"]]);
    await site.end();
  });

  test("keeps those of an address that has become part of a network of the same set while no agent ran", async () => {
    const site = follow();
    site.adopt(["10.0.0.1", "10.0.0.4"], [], ["10.0.0.0/31", "10.0.0.8/29"]);
    site.change([], ["a", endpoint("10.0.0.1")]);
    await site.settled();

    expect(site.forgotten).toEqual([["10.0.0.4"]]);
    await site.end();
  });

  test("looks at the connections once a second at most, for all addresses together", async () => {
    const site = follow();
    const pods = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
    site.change([], ...pods.map((pod) => [pod, endpoint(pod)] as const));
    site.change(["10.0.0.1"], ["10.0.0.1", undefined]);
    await site.settled();
    site.change(["10.0.0.2"], ["10.0.0.2", undefined]);
    site.change(["10.0.0.3"], ["10.0.0.3", undefined]);
    await site.settled();
    expect(site.forgotten).toEqual([["10.0.0.1"]]);

    await site.passSecond();
    await site.settled();
    expect(site.forgotten).toEqual([["10.0.0.1"], ["10.0.0.2", "10.0.0.3"]]);
    await site.end();
  });

  test.each([
    ["with it", true],
    ["soon after it", false],
  ])("forgets those of an address that another endpoint gets %s", async (_, isAtOnce) => {
    const site = follow();
    site.change([], ["a", endpoint("10.0.0.1")], ["z", endpoint("10.0.0.9")]);
    // The loop is busy then.
    site.change(["10.0.0.9"], ["z", undefined]);
    await site.settled();
    const next = ["b", endpoint("10.0.0.1")] as const;
    site.change(["10.0.0.1"], ["a", undefined], ...(isAtOnce ? [next] : []));
    if (!isAtOnce) site.change([], next);
    await site.passSecond();
    await site.settled();

    expect(site.forgotten).toEqual([["10.0.0.9"], ["10.0.0.1"]]);
    await site.end();
  });

  test("tries again those of a list that failed, also if another endpoint has got the address", async () => {
    const site = follow();
    site.change([], ["a", endpoint("10.0.0.1")], ["b", endpoint("10.0.0.2")]);
    site.failures.push(new Error("no buffer space"));
    site.change(["10.0.0.1", "10.0.0.2"], ["a", undefined], ["b", undefined]);
    await site.settled();
    expect(site.forgotten).toEqual([]);

    site.change([], ["c", endpoint("10.0.0.1")]);
    await site.passSecond();
    await site.settled();
    expect(site.forgotten.map((each) => each.toSorted())).toEqual([["10.0.0.1", "10.0.0.2"]]);
    await site.end();
  });

  test("reads no endpoint again that has not changed", async () => {
    const site = follow();
    let reads = 0;
    const counted = endpoint("10.0.0.7");
    const { ipNetworks } = counted.spec;
    const get = () => {
      reads += 1;
      return ipNetworks;
    };
    const spec = Object.defineProperty({ ...counted.spec }, "ipNetworks", { get });
    site.change([], ["a", endpoint("10.0.0.1")], ["b", { ...counted, spec }]);
    const before = reads;
    site.change(["10.0.0.1"], ["a", undefined]);
    await site.settled();

    expect(site.forgotten).toEqual([["10.0.0.1"]]);
    expect(reads).toBe(before);
    await site.end();
  });

  test("keeps those of an address that another endpoint had before", async () => {
    const site = follow();
    site.change([], ["a", endpoint("10.0.0.1")]);
    site.change([], ["b", endpoint("10.0.0.1")]);
    site.change(["10.0.0.1"], ["a", undefined]);
    await site.settled();

    expect(site.forgotten).toEqual([]);
    await site.end();
  });
});
