/** Pools that overlap, which only `kubectl apply` can create: no address is assigned twice, and everything names both pools. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { hostProblem } from "../support/host.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { type KubePod, type KubeSite, openKubeSite } from "../support/kube-store-site.ts";
import { testNeeding } from "../support/needs.ts";
import { failureOf } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";

const problem = hostProblem() ?? apiServerProblem();
const testSite = testNeeding(problem);
/** The first has one block, the second two that overlap it. */
const [FIRST, SECOND] = [
  { name: "first", cidr: "10.90.0.0/29", blockSize: 29 },
  { name: "second", cidr: "10.90.0.0/28", blockSize: 30 },
];

let site: KubeSite;
beforeAll(async () => {
  if (problem === undefined) site = await openKubeSite();
}, 60_000);
afterAll(() => site?.[Symbol.asyncDispose]());

const applyPool = ({ name, ...spec }: typeof FIRST) =>
  site.server.apply(JSON.stringify({ apiVersion: "vendor.org/v3", kind: "IPPool", metadata: { name }, spec }));
const asking = (...pools: readonly string[]) => site.config({ ipam: { type: "vendor-ipam", ipv4_pools: pools } });
const check = () => site.admin(["ipam", "check"]);

describe("two pools that overlap", () => {
  testSite("never give one address twice; ADD and the check name both", async () => {
    await applyPool(FIRST);
    const pods: KubePod[] = [];
    const addresses: string[] = [];
    const add = async (...pools: readonly string[]) => {
      const pod = await site.makePod(`overlap-${pods.length}`);
      const result = await site.call("ADD", pod, asking(...pools));
      pods.push(pod);
      if (result.code === 0)
        addresses.push((JSON.parse(result.stdout) as { ips: [{ address: string }] }).ips[0].address);
      return result;
    };
    for (let count = 0; count < 3; count += 1) await add("first");
    const second = Date.now();
    await pollUntil(() => Date.now() > second + 1_000, "the next second");
    await applyPool(SECOND);

    const refused = failureOf(await add("second"));
    expect([refused.code, refused.msg]).toEqual([
      101,
      expect.stringMatching(/pool "second": it overlaps pool "first"/),
    ]);
    const warned = await add("first");
    expect(warned.stderr).toContain('Pool "second" is not used: it overlaps pool "first" (10.90.0.0/29)');
    for (let count = 0; count < 4; count += 1) await add("first");
    expect(addresses).toHaveLength(8);
    expect(new Set(addresses).size).toBe(8);
    expect(failureOf(await add("first")).code).toBe(102);
    await expect(check()).rejects.toThrow('Pool "second" is not used: it overlaps pool "first"');

    for (const pod of pods) await site.del(pod);
    await site.admin(["delete", "ippool", "second"]);
    expect(await check()).toContain("no problems");
  });
});
