/** The model and the kernel of this machine give the same replies, states and messages for random batches. */
import { describe, expect, test } from "bun:test";
import { ownSockets } from "../../../src/linux/netlink-socket.ts";
import { runInNewNetns } from "../../../src/linux/netns.ts";
import type { NftChange } from "../../../src/linux/nftables/ruleset.ts";
import { canMakeNetns } from "../../../test/support/netns.ts";
import { proofSize } from "../../../test/support/proof-size.ts";
import { Random } from "../../schedule/random.ts";
import { ModelSockets } from "./model-sockets.ts";
import { observe, text } from "./observe.ts";
import { randomBatches } from "./random-batches.ts";

const SEQUENCES = proofSize({ everyDay: 60, soak: 1_000 });
const FIRST_SEED = Number(process.env["SEED"] ?? 1);
const why = canMakeNetns ? "" : " (skipped: needs root)";

describe.skipIf(!canMakeNetns)(`the model of nf_tables${why}`, () => {
  test("does what the kernel does, for random batches", () => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + SEQUENCES; seed++) {
      const batches = randomBatches(new Random(seed));
      if (differenceFor(batches) === undefined) continue;
      const least = shrunk(batches);
      const { real = "{}", modelled = "{}" } = differenceFor(least) ?? {};
      const lines = least.map((batch, index) => batch.map((change) => `  ${index}: ${text(change)}`).join("\n"));
      console.error(`seed ${seed}\n${lines.join("\n")}`);
      expect({ seed, seen: JSON.parse(modelled) }).toEqual({ seed, seen: JSON.parse(real) });
    }
  }, 600_000);
});

type Batches = readonly (readonly NftChange[])[];

/** What differs after which batch; `undefined` if nothing does. */
function differenceFor(batches: Batches): Difference | undefined {
  const real = runInNewNetns(() => ({ seen: observe(ownSockets, batches) })).seen;
  const modelled = observe(new ModelSockets(), batches);
  const index = real.findIndex((seen, each) => seen !== modelled[each]);
  return index === -1 ? undefined : { index, real: real[index] ?? "", modelled: modelled[index] ?? "" };
}

interface Difference {
  readonly index: number;
  readonly real: string;
  readonly modelled: string;
}

/** Leaves out batches and changes as long as something still differs. */
function shrunk(batches: Batches): Batches {
  let [least, found] = [batches, differenceFor(batches)];
  for (let isSmaller = true; isSmaller && found !== undefined; ) {
    least = least.slice(0, found.index + 1);
    const candidates = least.flatMap((batch, at): Batches[] => [
      least.toSpliced(at, 1),
      ...batch.map((_change, which) => least.with(at, batch.toSpliced(which, 1))),
    ]);
    const next = candidates.find((each) => differenceFor(each) !== undefined);
    isSmaller = next !== undefined;
    if (next !== undefined) [least, found] = [next, differenceFor(next)];
  }
  return least;
}
