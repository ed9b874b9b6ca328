/**
 * Changes by others between two calls of an agent take effect with the next call,
 * although the agent remembers the previous state: each test starts when calls take
 * one request, so that the next one guesses.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Change } from "../../src/datastore/datastore.ts";
import { ERROR_TABLE } from "../../src/errors.ts";
import { blockOf } from "../../src/ip/block.ts";
import { affinityKey, blockKey, handleKey, resourceKey } from "../../src/model/keys.ts";
import { hasEtcd } from "../support/etcd.ts";
import { address, configurationChange, nodeChange, poolChange, reservationChange, seed } from "../support/ipam.ts";
import { IPAM_SITES, type IpamSite, judge, readyCluster } from "../support/ipam-site.ts";
import { cniErrorOfRun, type PluginRun } from "../support/run-plugin.ts";
import { addressOf, callIpam, counted, type IpamCall, type SiteAgent, startSiteAgent } from "./site-agent.ts";

const BLUE = poolChange("blue", "10.1.0.0/16", { nodeSelector: "rack == 'one'" });
const GREEN = poolChange("green", "10.2.0.0/16", { nodeSelector: "rack == 'two'" });

describe.skipIf(!hasEtcd)(`between two calls of an agent${hasEtcd ? "" : " (skipped: no etcd)"}`, () => {
  let site: IpamSite;
  let agent: SiteAgent;
  let containers: number;
  beforeEach(async () => {
    const [, etcd] = IPAM_SITES;
    site = await etcd.start(nodeChange("node-1", { rack: "one" }), BLUE, GREEN, configurationChange({}));
    agent = await startSiteAgent(site);
    containers = 0;
  });
  afterEach(async () => {
    await agent?.[Symbol.asyncDispose]();
    await site?.stop();
  });

  const call = (given: Omit<IpamCall, "container"> & { readonly container?: string }) => {
    containers += 1;
    return callIpam(site, { container: `c${containers}`, ...given });
  };
  /** Runs ADDs until one takes a single request: from then on calls guess. Returns their addresses. */
  const steadyAdds = async (given: Partial<IpamCall> = {}) => {
    const addresses: string[] = [];
    for (let left = 5; left > 0; left--) {
      const { outcome, requests } = await counted(site, () => call({ command: "ADD", ...given }));
      addresses.push(addressOf(outcome));
      if (requests === 1) return addresses;
    }
    throw new Error("no ADD took a single request");
  };
  const next = async (given: Partial<IpamCall> = {}): Promise<PluginRun> => {
    const { outcome, requests } = await counted(site, () => call({ command: "ADD", ...given }));
    expect(requests).toBeLessThanOrEqual(2);
    return outcome;
  };
  const others = (...changes: readonly Change[]) => seed(site.store, ...changes);
  const entryOf = async (key: string) => (await site.store.read([{ kind: "key", key }])).answers[0]?.[0];
  const remove = async (key: string) => {
    const revision = (await entryOf(key))?.revision ?? "";
    expect((await site.store.commit([{ kind: "delete", key, revision }])).ok).toBe(true);
  };
  const otherNode = (): IpamSite => ({ ...site, config: { ...site.config, nodename: "node-2" } });
  const blockAround = (text: string) => blockOf(address(text), 26);
  /** The address that the next ADD would get. */
  const following = (text: string | undefined) => text?.replace(/\d+$/, (last) => String(Number(last) + 1)) ?? "";
  const expectCode = (run: PluginRun, kind: keyof typeof ERROR_TABLE) =>
    expect(cniErrorOfRun(run).code).toBe(ERROR_TABLE[kind].code);
  const expectSound = async () => expect((await judge(site)).problems).toEqual([]);

  test("nothing changed: the next ADD gets the following address", async () => {
    const addresses = await steadyAdds();

    expect(addressOf(await next())).toBe(following(addresses.at(-1)));
  });

  test("a pool was disabled: no address of it is assigned", async () => {
    await steadyAdds();
    await others(poolChange("blue", "10.1.0.0/16", { nodeSelector: "rack == 'one'", disabled: true }));

    expectCode(await next(), "addresses-exhausted");
  });

  test("a pool was deleted: no address of it is assigned", async () => {
    await steadyAdds();
    await remove(BLUE.key);

    expectCode(await next(), "addresses-exhausted");
  });

  test("a pool was added that precedes the one in use: its block is used", async () => {
    const [former = ""] = await steadyAdds({ ipam: { ipv4_pools: ["green"] } });
    await remove(GREEN.key);
    await steadyAdds();
    await others(poolChange("above", "10.2.0.0/16"));

    expect(blockAround(addressOf(await next()))).toEqual(blockAround(former));
  });

  test("an address was reserved: it is not assigned", async () => {
    const addresses = await steadyAdds();
    const reserved = following(addresses.at(-1));
    await others(reservationChange("one", [`${reserved}/32`]));

    expect(addressOf(await next())).toBe(following(reserved));
  });

  test("a reservation was removed: its address is assigned", async () => {
    const reserved = following((await steadyAdds()).at(-1));
    const reservation = reservationChange("one", [`${reserved}/32`]);
    await others(reservation);
    await steadyAdds();
    await remove(reservation.key);

    expect(addressOf(await next())).toBe(reserved);
  });

  test("a reservation was changed: its new address is not assigned", async () => {
    const [first = ""] = await steadyAdds();
    await others(reservationChange("one", ["10.9.0.0/16"]));
    const last = (await steadyAdds()).at(-1);
    await others(reservationChange("one", [`${following(last)}/32`, `${first}/32`]));

    expect(addressOf(await next())).toBe(following(following(last)));
  });

  test("strictAffinity was turned on: no address of another node's block is assigned", async () => {
    await others(nodeChange("node-2", { rack: "one" }));
    let last = addressOf(await callIpam(otherNode(), { command: "ADD", container: "theirs", by: "its own process" }));
    const askForNext = () => {
      last = following(last);
      return counted(site, () => call({ command: "ADD", args: `IP=${last}` }));
    };
    const counts = [await askForNext(), await askForNext()].map(({ requests }) => requests);
    expect(counts).toEqual([2, 1]);
    await others(configurationChange({ strictAffinity: true }));

    expectCode((await askForNext()).outcome, "address-taken");
  });

  test("the datastore was marked not ready: ADD and DEL fail", async () => {
    await steadyAdds();
    await others(readyCluster(false));

    expectCode(await next(), "try-again-later");
    expectCode(await next({ command: "DEL", container: "c2" }), "try-again-later");
    expect(await entryOf(handleKey("net.c2"))).toBeDefined();
  });

  test("a process without the agent took the following address: the next ADD gets another", async () => {
    const addresses = await steadyAdds();
    const taken = addressOf(await call({ command: "ADD", by: "its own process" }));
    expect(taken).toBe(following(addresses.at(-1)));

    expect(addressOf(await next())).toBe(following(taken));
    await expectSound();
  });

  test("a process without the agent took an address: the next DEL keeps it", async () => {
    await steadyAdds();
    const taken = await call({ command: "ADD", container: "theirs", by: "its own process" });
    expect((await next({ command: "DEL", container: "c2" })).exitCode).toBe(0);

    expect((await call({ command: "CHECK", container: "theirs" })).exitCode).toBe(0);
    expect(addressOf(await call({ command: "ADD", container: "theirs" }))).toBe(addressOf(taken));
    await expectSound();
  });

  test("a process without the agent did the same ADD: it returns the same address", async () => {
    await steadyAdds();
    await call({ command: "ADD", by: "its own process" });
    const taken = await call({ command: "ADD", container: "same", by: "its own process" });

    expect(addressOf(await next({ container: "same" }))).toBe(addressOf(taken));
    await expectSound();
  });

  test("another node did an ADD of the same container ID: this node assigns an address of its own", async () => {
    await others(nodeChange("node-2", { rack: "one" }));
    await steadyAdds();
    const theirs = await callIpam(otherNode(), { command: "ADD", container: "same", by: "its own process" });
    const ours = await call({ command: "ADD", container: "same" });

    expect(addressOf(ours)).not.toBe(addressOf(theirs));
    expect((await call({ command: "DEL", container: "same" })).exitCode).toBe(0);
    expect((await callIpam(otherNode(), { command: "CHECK", container: "same" })).exitCode).toBe(0);
    await expectSound();
  });

  test("a process without the agent did the same DEL: there is nothing left to do", async () => {
    await steadyAdds();
    await call({ command: "DEL", container: "c2", by: "its own process" });
    await call({ command: "ADD", container: "theirs", by: "its own process" });
    expect((await next({ command: "DEL", container: "c2" })).exitCode).toBe(0);

    expect((await call({ command: "CHECK", container: "theirs" })).exitCode).toBe(0);
    await expectSound();
  });

  test("the block was deleted: it is created again", async () => {
    const [first = ""] = await steadyAdds();
    for (let index = containers; index > 0; index--) await callIpam(site, { command: "DEL", container: `c${index}` });
    await remove(blockKey(blockAround(first)));

    expect(addressOf(await next())).toBe(first);
    await expectSound();
  });

  test("the block was deleted: a DEL only deletes the handle", async () => {
    const [first = ""] = await steadyAdds();
    await remove(blockKey(blockAround(first)));
    expect((await next({ command: "DEL", container: "c2" })).exitCode).toBe(0);

    expect(await entryOf(handleKey("net.c2"))).toBeUndefined();
    expect(await entryOf(blockKey(blockAround(first)))).toBeUndefined();
  });

  test("the host's claim on its block was removed: it is claimed again", async () => {
    const [first = ""] = await steadyAdds();
    const claim = affinityKey("node-1", blockAround(first));
    await remove(claim);
    await next();

    expect(await entryOf(claim)).toBeDefined();
    await expectSound();
  });

  test("the node's labels were changed: the pool that selects it now is used", async () => {
    await steadyAdds();
    await others(nodeChange("node-1", { rack: "two" }));

    const { outcome } = await counted(site, () => call({ command: "ADD" }));
    expect(addressOf(outcome)).toStartWith("10.2.");
    await expectSound();
  });

  test("the node was deleted: it is treated as one without labels", async () => {
    await steadyAdds();
    await remove(resourceKey("nodes", { name: "node-1" }));

    expectCode(await next(), "addresses-exhausted");
  });
});
