/**
 * Compares which container has which address in three places: the plugin's
 * results, the kernel's routes, and the datastore.
 */
import { expect } from "bun:test";
import { openMemory } from "../../src/datastore/memory/memory.ts";
import { formatAddress } from "../../src/ip/address.ts";
import { readAllRecords } from "../../src/ipam/all-records.ts";
import { addressAt, attributesOf } from "../../src/ipam/block.ts";
import { findProblems, type IpamRecords, type Problem } from "../../src/ipam/invariants.ts";
import { seed } from "./ipam.ts";
import { type AddResult, NETWORK, type PluginSite, type Pod } from "./plugin-site.ts";

/** Each container's addresses, sorted. */
type Account = Readonly<Record<string, readonly string[]>>;

export interface Attached {
  readonly pod: Pod;
  readonly result: AddResult;
}

/** Fails unless all three are equal, and no other container has an address. */
export async function expectAgreement(site: PluginSite, attached: readonly Attached[]): Promise<void> {
  const returned = accountOf(
    attached.flatMap(({ pod, result }) => result.ips.map(({ address }) => [pod.containerId, address] as const)),
  );
  const all = Object.values(returned).flat();
  expect(Object.values(returned).map((addresses) => addresses.length)).toEqual(attached.map(() => 2));
  expect(new Set(all).size).toBe(all.length);
  expect(await routed(site)).toEqual(returned);
  expect(await recorded(site)).toEqual(returned);
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

/** In the kernel: routes to links with a container's mark. */
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

/** In the datastore, whose records must also be consistent. */
async function recorded({ store }: PluginSite): Promise<Account> {
  const entries = [...(await store.list())];
  const world = await worldOf(entries);
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

/** What is wrong with the records of addresses. */
export async function problemsOf({ store }: PluginSite): Promise<readonly Problem[]> {
  return findProblems(await worldOf([...(await store.list())]));
}

async function worldOf(entries: readonly (readonly [key: string, value: string])[]): Promise<IpamRecords> {
  const copy = openMemory();
  await seed(copy, ...entries.map(([key, value]) => ({ kind: "put", key, value }) as const));
  return readAllRecords(copy);
}
