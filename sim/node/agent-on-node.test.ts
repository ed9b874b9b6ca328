import { describe, expect, test } from "bun:test";
import { DATASTORES } from "../datastore/servers.ts";
import { startSite } from "./node-site.ts";

const NETWORK = { policy: "required", policySetupSeconds: 10 } as const;
const HOUR = 3_600_000;

describe("the agent of a simulated node", () => {
  test.each(DATASTORES)("releases what a lost sandbox held, on datastore %s", async (datastore) => {
    const { node, createPod, until, pass, left } = await startSite({ datastore, network: NETWORK });
    node.startAgent();
    await pass(1_000);
    await until(node.runtime.add(createPod("web"), "container-1"));
    node.runtime.forget("container-1");
    await pass(HOUR / 4);

    expect({ left: left(), logged: node.logged }).toMatchObject({ left: [] });
  });

  test("writes the status of a pod only after its rules, whenever it is killed", async () => {
    let survived = false;
    for (let effects = 0; !survived; effects += 3) {
      const { node, createPod, until, pass, scheduler } = await startSite({ seed: effects, network: NETWORK });
      node.startAgent();
      await pass(1_000);
      node.agent?.killAfter(effects);
      const wrong: string[] = [];
      const look = () => {
        const link = [...node.host.root.links.values()].find(({ kind }) => kind === "veth");
        const isStatus = node.statusFiles.size > 0;
        if (isStatus && (link === undefined || !hasRules(node.host, link.name))) wrong.push(`at ${scheduler.now}`);
      };
      const adding = node.runtime.add(createPod("web"), "container-1");
      await scheduler.runUntil(scheduler.now + 3_000, look);
      survived = node.agent !== undefined;
      node.startAgent();
      await scheduler.runUntil(scheduler.now + 3_000, look);
      expect({ effects, added: await until(adding), wrong, status: node.statusFiles.size }).toMatchObject({
        ...{ effects, wrong: [], status: 1 },
        added: { ok: true },
      });
      if (survived) expect(effects).toBeGreaterThan(6);
    }
  });

  test("does the same with the same seed, and something else with another", async () => {
    const run = async (seed: number) => {
      const { node, createPod, until, pass, scheduler, network } = await startSite({ seed, network: NETWORK });
      network.disturbance = { ...network.disturbance, lostRequest: 0.1, lostAnswer: 0.1 };
      node.startAgent();
      const adding = [1, 2, 3].map((number) => node.runtime.add(createPod(`web-${number}`), `container-${number}`));
      await pass(HOUR / 6);
      return {
        added: await until(Promise.all(adding)),
        steps: scheduler.steps,
        now: scheduler.now,
        logged: node.logged,
      };
    };
    const [first, again, other] = [await run(1), await run(1), await run(2)];

    expect(again).toEqual(first);
    expect(other.steps).not.toBe(first.steps);
  });
});

/** Whether the policy table names the link. */
function hasRules({ root }: Awaited<ReturnType<typeof startSite>>["node"]["host"], link: string): boolean {
  const text = new TextDecoder();
  return [...root.nftables.tables.values()].some(({ sets }) =>
    [...sets.values()].some(({ elements }) =>
      [...elements.values()].some(({ key }) => text.decode(key).startsWith(link)),
    ),
  );
}
