import { expect, test } from "bun:test";
import { DATASTORES } from "../datastore/servers.ts";
import { Random } from "../schedule/random.ts";
import { startSite } from "./node-site.ts";

const MOMENTS = 12;

/** A request under way is awaited, as long as its retries last if the datastore does not answer. */
const situations = [
  { situation: "undisturbed", faults: {}, patience: 10_000 },
  { situation: "with lost requests and answers", faults: { lostRequest: 0.2, lostAnswer: 0.2 }, patience: 60_000 },
];
const cases = DATASTORES.flatMap((datastore) => situations.map((each) => ({ datastore, ...each })));

test.each(cases)(
  "an agent that is told to end at any moment ends, $situation, on datastore $datastore",
  async (given) => {
    const stillRunning: string[] = [];
    for (let seed = 1; seed <= MOMENTS; seed++) {
      const { node, network, createPod, pass, scheduler } = await startSite({ seed, datastore: given.datastore });
      network.disturbance = { ...network.disturbance, ...given.faults };
      node.startAgent();
      for (const number of [1, 2]) void node.runtime.add(createPod(`web-${number}`), `container-${number}`);
      for (let events = momentOf(seed); events > 0; events--) await scheduler.step();
      const toldAt = scheduler.now;
      node.agent?.end();
      await pass(given.patience);
      if (node.agent !== undefined) stillRunning.push(`seed ${seed}, told at ${toldAt} ms`);
    }

    expect(stillRunning).toEqual([]);
  },
);

/** A number of events: most moments are in the start, when most is under way. */
function momentOf(seed: number): number {
  const random = new Random(seed).fork("moment");
  return random.below(random.pick([10, 100, 1_000]));
}
