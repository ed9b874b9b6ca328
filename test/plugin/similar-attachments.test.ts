/** Attachments that are easily confused: each keeps its own links, addresses and records. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { ordinalsOf, releaseOrdinals } from "../../src/ipam/block.ts";
import { readBlock, writeBlock } from "../../src/model/ipam-block.ts";
import { blocksPrefix, handleKey } from "../../src/model/keys.ts";
import { hostProblem } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import {
  type AddResult,
  failureOf,
  NETWORK,
  openPluginSite,
  type PluginSite,
  type Pod,
  withoutLinks,
} from "../support/plugin-site.ts";

const test = testNeeding(hostProblem());

describe("similar attachments", () => {
  let site: PluginSite;
  beforeAll(async () => {
    if (hostProblem() === undefined) site = await openPluginSite("embedded");
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const podArguments = (name: string) => `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${name}`;
  const addressOf = ({ ips }: AddResult) => ips[0]?.address.split("/")[0] ?? "";
  /** Releases the pod's address behind its back. */
  const takeAway = async (pod: Pod) => {
    const handle = `${NETWORK}.${pod.containerId}`;
    for (const [key, value] of await site.store.list()) {
      if (!key.startsWith(blocksPrefix(4))) continue;
      const block = readBlock(value, key);
      const left = releaseOrdinals(block, ordinalsOf(block, { handle }), new Date());
      await site.store.put([{ kind: "put", key, value: writeBlock(left) }]);
    }
    await site.store.remove(handleKey(handle));
  };
  const linksIn = (pod: Pod) => site.inside(pod, ["ip", "-o", "link"]);

  test("container IDs with the same beginning: the second is refused, and the first keeps its link", async () => {
    const [first, second] = [
      await site.makePod({ containerId: "000000000001" }),
      await site.makePod({ containerId: "000000000002" }),
    ];
    await site.add(first);
    const before = withoutLinks(await site.left());

    expect(failureOf(await site.call("ADD", second))).toMatchObject({
      code: 106,
      msg: expect.stringContaining(first.containerId),
    });
    expect(withoutLinks(await site.left())).toEqual(before);
    expect(await linksIn(first)).toContain("eth0");
    await site.quietly("DEL", second);
    await site.quietly("DEL", first);
    expect(await site.left()).toEqual([]);
  });

  test("a second interface of a pod, and a pod whose name contains both", async () => {
    const first = await site.makePod({ args: podArguments("web"), ifname: "net1" });
    const second = await site.makePod({ args: podArguments("web.net1") });
    const results = [await site.add(first), await site.add(second)];

    expect(await linksIn(first)).toContain("net1");
    for (const [index, pod] of [first, second].entries()) {
      await site.quietly("CHECK", pod, { config: site.config({ prevResult: results[index] }) });
      await site.quietly("DEL", pod);
    }
    expect(await site.left()).toEqual([]);
  });

  test("one pod in two networks: GC, CHECK and DEL of one do not affect the other", async () => {
    const first = await site.makePod({ args: podArguments("web-0") });
    const second = { ...first, ifname: "net1" };
    const elsewhere = site.config({ name: "elsewhere" });
    await site.add(first);
    const prevResult = await site.add(second, { config: elsewhere });

    await site.quietly("GC", first, { config: site.config({ "cni.dev/valid-attachments": [] }) });
    expect(await linksIn(first)).not.toContain("eth0");
    await site.quietly("DEL", first);
    await site.quietly("CHECK", second, { config: { ...elsewhere, prevResult } });
    // With the name of the wrong network nothing of it is changed.
    await site.quietly("DEL", second);
    await site.quietly("CHECK", second, { config: { ...elsewhere, prevResult } });
    await site.quietly("DEL", second, { config: elsewhere });
    expect(await site.left()).toEqual([]);
  });

  test("a renamed node: a DEL with the new name finds what was recorded with the old one", async () => {
    const pod = await site.makePod({ args: podArguments("web-1") });
    const other = { ...pod, ifname: "net1" };
    const before = { config: site.config({ nodename: "node-1.example.org" }) };
    for (const each of [pod, other]) await site.add(each, before);

    await site.quietly("DEL", pod);
    expect((await site.left()).filter((line) => line.includes("workloadendpoints"))).toHaveLength(1);
    await site.quietly("DEL", other);
    expect(await site.left()).toEqual([]);
  });

  test("one node by two names: an ADD under the new one keeps the address and leaves one endpoint", async () => {
    const pod = await site.makePod();
    const first = await site.add(pod, { config: site.config({ nodename: "node-1.example.org" }) });

    expect(await site.add(pod)).toEqual(first);
    const endpoints = (await site.left()).filter((line) => line.includes("workloadendpoints"));
    expect(endpoints).toEqual([expect.not.stringContaining("example.org")]);
    await site.quietly("CHECK", pod, { config: site.config({ prevResult: first }) });
    await site.quietly("DEL", pod);
    expect(await site.left()).toEqual([]);
  });

  test("an address that was taken away: a second ADD gives another one and leaves neither the old address nor its route", async () => {
    const pod = await site.makePod();
    const before = addressOf(await site.add(pod));
    await takeAway(pod);

    const result = await site.add(pod);
    const after = addressOf(result);
    expect(after).not.toBe(before);
    expect(await site.inside(pod, ["ip", "-o", "-4", "address"])).not.toContain(`${before}/`);
    expect(await site.host.must(["ip", "-4", "route"])).not.toContain(`${before} `);
    await site.quietly("CHECK", pod, { config: site.config({ prevResult: result }) });
    expect(await site.host.must(["ip", "-4", "route"])).toContain(`${after} `);
    await site.quietly("DEL", pod);
    expect(await site.left()).toEqual([]);
  });

  test("an interface that was renamed in the container: CHECK reports it, ADD creates it again, DEL leaves nothing", async () => {
    const pod = await site.makePod();
    const prevResult = await site.add(pod);
    const rename = () => site.inside(pod, ["sh", "-c", "ip link set eth0 down; ip link set eth0 name other"]);
    await rename();
    const config = site.config({ prevResult });
    expect(failureOf(await site.call("CHECK", pod, { config })).code).toBe(109);

    expect(await site.add(pod)).toEqual(prevResult);
    expect(await linksIn(pod)).not.toContain("other");
    await site.quietly("CHECK", pod, { config });
    await rename();
    await site.quietly("DEL", pod);
    expect(await linksIn(pod)).not.toContain("other");
    expect(await site.left()).toEqual([]);
  });
});
