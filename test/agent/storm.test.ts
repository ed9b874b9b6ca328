/** Many calls at once through one agent, and many in a row: exactly the right addresses, and no resource leaks. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { STORES } from "../plugin/stores.ts";
import { expectAgreement } from "../support/compare-addresses.ts";
import { hostProblem } from "../support/host.ts";
import { openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { type Agent, startAgent } from "./agent.ts";

const SANDBOXES = 60;
/** On an overloaded machine some callers do not wait for the agent and do the work themselves. */
const MOST = SANDBOXES / 2;
/** ADD, CHECK and DEL of each: 300 calls, ten times as many in `make soak`. */
const LIVES = proofSize({ everyDay: 100, soak: 1_000 });
const LIVES_AT_ONCE = 10;
const WARM_UPS = 5;
const KILLED_AFTER = 5;
const LIMIT = 300_000;
/** Calls that waited for their turn leave timers of up to ten seconds; an idle agent must not wait for them. */
const ENDS_WITHIN = 8_000;

for (const { kind, test } of STORES) {
  describe(`the node agent on ${kind}`, () => {
    let site: PluginSite;
    let pods: readonly Pod[];
    let agent: Agent;
    beforeAll(async () => {
      if (hostProblem() !== undefined) return;
      site = await openPluginSite(kind);
      pods = await Promise.all(Array.from({ length: SANDBOXES }, () => site.makePod()));
      agent = await startAgent(site.host);
      // A caller waits a second for an agent that has just started and compiles its code.
      const [first] = pods;
      for (let time = 0; first !== undefined && time < WARM_UPS; time++) {
        await site.add(first);
        await site.quietly("DEL", first);
      }
      await agent.hasServed(2 * WARM_UPS);
    });
    afterAll(() => site?.[Symbol.asyncDispose]());

    const addAll = () => Promise.all(pods.map(async (pod) => ({ pod, result: await site.add(pod) })));
    const delAll = () => Promise.all(pods.map((pod) => site.quietly("DEL", pod)));
    const servedSince = (count: number) => agent.served().slice(count);

    test(
      `serves most of ${SANDBOXES} ADDs at once, then of as many DELs: exactly their addresses, and nothing is left`,
      async () => {
        const before = agent.served().length;
        await expectAgreement(site, await addAll());
        await delAll();

        expect(await site.left()).toEqual([]);
        await agent.hasServed(before + 2 * MOST);
        const calls = ["ADD", "DEL"].map((command) => `plugin ${command}: exit code 0`);
        expect([...new Set(servedSince(before))]).toEqual(calls);
      },
      LIMIT,
    );

    test(
      `leaks no descriptor and no thread in ${3 * LIVES} calls`,
      async () => {
        const live = async (pod: Pod) => {
          const prevResult = await site.add(pod);
          await site.quietly("CHECK", pod, { config: site.config({ prevResult }) });
          await site.quietly("DEL", pod);
        };
        const liveAll = (count: number) => Promise.all(pods.slice(0, count).map(live));
        await liveAll(LIVES_AT_ONCE);
        const before = agent.server.holds();
        for (let lives = 0; lives < LIVES; lives += LIVES_AT_ONCE) await liveAll(LIVES_AT_ONCE);

        await pollUntil(
          () => agent.server.holds().descriptors <= before.descriptors,
          "the agent to close what it opened",
        );
        const after = agent.server.holds();
        expect(after.connections).toBeLessThanOrEqual(LIVES_AT_ONCE);
        expect(after.threads).toBeLessThanOrEqual(before.threads);
        expect(await site.left()).toEqual([]);
      },
      LIMIT,
    );

    test(
      "leaves the ADDs in progress to their callers if it is killed, and none is lost",
      async () => {
        const before = agent.served().length;
        // The DELs of the test before may be logged only now.
        const addsServed = () => servedSince(before).filter((call) => call.startsWith("plugin ADD")).length;
        const adding = addAll();
        await pollUntil(() => addsServed() >= KILLED_AFTER, "some ADDs to be served");
        await agent.signal("KILL");
        await agent.ended;
        await expectAgreement(site, await adding);
        expect(addsServed()).toBeLessThan(SANDBOXES);

        agent = await startAgent(site.host);
        await delAll();
        expect(await site.left()).toEqual([]);
        await agent.hasServed(MOST);
      },
      LIMIT,
    );

    test("exits soon after it is stopped, even if calls waited for their turn before", async () => {
      await addAll();
      await delAll();
      await agent.signal("TERM");
      const late = Bun.sleep(ENDS_WITHIN).then(() => "not in time");

      expect(await Promise.race([agent.ended, late])).toBe(0);
    });
  });
}
