/**
 * Many sandboxes at once on one host: all added, all checked, half of them
 * deleted while others are added. After each step the addresses must be the same in
 * the plugin's results, the kernel's routes and the datastore.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { type Attached, expectAgreement } from "../support/compare-addresses.ts";
import { hostProblem } from "../support/host.ts";
import { openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";
import { proofSize } from "../support/proof-size.ts";
import { STORES } from "./stores.ts";

const SANDBOXES = proofSize({ everyDay: 30, soak: 100 });
const ROUNDS = proofSize({ everyDay: 2, soak: 3 });
const LIMIT = 300_000;

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

async function removeNamespaces({ host }: PluginSite, attached: readonly Attached[]): Promise<void> {
  await Promise.all(attached.map(({ pod }) => host.must(["ip", "netns", "delete", pod.netnsName])));
}
