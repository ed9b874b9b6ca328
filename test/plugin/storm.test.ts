/**
 * Many sandboxes at once on one host: all added, all checked, half of them
 * deleted while others are added. After each step three accounts must agree to
 * the address: what the plugin answered, what the kernel routes, and what the
 * datastore holds.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { openMemory } from "../../src/datastore/memory/memory.ts";
import { formatAddress } from "../../src/ip/address.ts";
import { addressAt, attributesOf } from "../../src/ipam/block.ts";
import { findProblems } from "../../src/ipam/invariants.ts";
import { readWorld } from "../../src/ipam/world.ts";
import { hostProblem } from "../support/host.ts";
import { seed } from "../support/ipam.ts";
import { type AddResult, NETWORK, openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";
import { proofSize } from "../support/proof-size.ts";
import { STORES } from "./stores.ts";

const SANDBOXES = proofSize({ everyDay: 30, soak: 100 });
const ROUNDS = 3;
const LIMIT = 300_000;

/** Each container's addresses, sorted. */
type Account = Readonly<Record<string, readonly string[]>>;

for (const { kind, test } of STORES) {
  describe(`${SANDBOXES} sandboxes at once on ${kind}`, () => {
    let site: PluginSite;
    beforeAll(async () => {
      if (hostProblem() === undefined) site = await openPluginSite(kind);
    });
    afterAll(() => site?.[Symbol.asyncDispose]());

    const makePods = (count: number) => Promise.all(Array.from({ length: count }, () => site.makePod()));
    const addAll = (pods: readonly Pod[]) =>
      Promise.all(pods.map(async (pod) => ({ pod, result: await site.add(pod) })));
    const delAll = (pods: readonly Pod[]) => Promise.all(pods.map((pod) => site.quietly("DEL", pod)));
    const checkAll = (attached: readonly Attached[]) =>
      Promise.all(
        attached.map(({ pod, result }) =>
          site.quietly("CHECK", pod, { config: site.config({ prevResult: { ...result } }) }),
        ),
      );

    const round = async () => {
      const first = await addAll(await makePods(SANDBOXES));
      await expectAgreement(site, first);
      await checkAll(first);

      const [leaving, staying] = [first.slice(0, SANDBOXES / 2), first.slice(SANDBOXES / 2)];
      const newcomers = await makePods(SANDBOXES / 2);
      const [added] = await Promise.all([addAll(newcomers), delAll(leaving.map(({ pod }) => pod))]);
      const alive = [...staying, ...added];
      await expectAgreement(site, alive);
      await checkAll(alive);

      await delAll(alive.map(({ pod }) => pod));
      expect(await site.left()).toEqual([]);
      await removeNamespaces(site, [...first, ...added]);
    };

    test(
      `have exactly their addresses in ${ROUNDS} rounds, and leave nothing`,
      async () => {
        for (let each = 0; each < ROUNDS; each++) await round();
      },
      LIMIT,
    );
  });
}

interface Attached {
  readonly pod: Pod;
  readonly result: AddResult;
}

async function expectAgreement(site: PluginSite, attached: readonly Attached[]): Promise<void> {
  const answered = accountOf(
    attached.flatMap(({ pod, result }) => result.ips.map(({ address }) => [pod.containerId, address] as const)),
  );
  const all = Object.values(answered).flat();
  expect(Object.values(answered).map((addresses) => addresses.length)).toEqual(attached.map(() => 2));
  expect(new Set(all).size).toBe(all.length);
  expect(await routed(site)).toEqual(answered);
  expect(await recorded(site)).toEqual(answered);
}

function accountOf(pairs: readonly (readonly [containerId: string, address: string])[]): Account {
  const account: Record<string, string[]> = {};
  for (const [containerId, address] of pairs) {
    const own = account[containerId] ?? [];
    account[containerId] = own;
    own.push(address.split("/")[0] ?? address);
  }
  for (const own of Object.values(account)) own.sort();
  return account;
}

/** By the kernel: routes to links that bear a container's mark. */
async function routed({ host }: PluginSite): Promise<Account> {
  const json = async (...args: readonly string[]) => JSON.parse(await host.must(["ip", "-j", ...args]));
  const links: readonly { ifname: string; ifalias?: string }[] = await json("link");
  const routes: readonly { dst: string; dev: string }[] = [
    ...(await json("-4", "route")),
    ...(await json("-6", "route")),
  ];
  const owners = new Map(links.map(({ ifname, ifalias = "" }) => [ifname, ifalias.split("/")[1] ?? ""]));
  return accountOf(
    routes
      .filter(({ dst, dev }) => owners.get(dev) !== "" && !dst.startsWith("fe80:"))
      .map(({ dst, dev }) => [owners.get(dev) ?? dev, dst]),
  );
}

/** By the datastore, whose records must also agree among themselves. */
async function recorded({ store }: PluginSite): Promise<Account> {
  const copy = openMemory();
  const entries = [...(await store.list())];
  await seed(copy, ...entries.map(([key, value]) => ({ kind: "put", key, value }) as const));
  const world = await readWorld(copy);
  expect(findProblems(world)).toEqual([]);
  expect(entries.filter(([key]) => key.includes("/workloadendpoints/"))).toHaveLength(world.handles.length);
  return accountOf(
    world.blocks.flatMap((block) =>
      block.allocations.flatMap((index, ordinal) => {
        if (index === undefined) return [];
        const handle = attributesOf(block, ordinal)?.handleId ?? "";
        return [[handle.slice(NETWORK.length + 1), formatAddress(addressAt(block, ordinal))] as const];
      }),
    ),
  );
}

async function removeNamespaces({ host }: PluginSite, attached: readonly Attached[]): Promise<void> {
  await Promise.all(attached.map(({ pod }) => host.must(["ip", "netns", "delete", pod.netnsName])));
}
