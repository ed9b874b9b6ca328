/**
 * Plays one seed after another that concerns a planted bug, until its invariant is violated:
 *
 *   bun sim/planted/search-seeds.process.ts PATCH FIRST-SEED MINUTES
 *
 * Writes a `Searched` as JSON.
 */

import { PLANTED_BUGS, type PlantedBug } from "./planted-bugs.ts";
import { playSeed } from "./play-seed.ts";

export interface Searched {
  /** The first seed that violates what it must; absent if none did. */
  readonly seed?: number;
  readonly what?: string;
  /** How many seeds were played. */
  readonly played: number;
  /** The one to go on with. */
  readonly next: number;
}

/** A process keeps some memory of each seed that it has played. */
const SEEDS_PER_PROCESS = 25;

const [patch, first, minutes] = process.argv.slice(2);
const bug = PLANTED_BUGS.find((each) => each.patch === patch);
if (bug === undefined) throw new Error(`There is no planted bug "${patch}"`);
console.log(JSON.stringify(await search(bug, Number(first), performance.now() + Number(minutes) * 60_000)));
process.exit(0);

async function search(planted: PlantedBug, from: number, end: number): Promise<Searched> {
  let played = 0;
  let seed = from;
  for (; performance.now() < end && played < SEEDS_PER_PROCESS; seed += 1) {
    const violations = await playSeed(planted, seed);
    if (violations === undefined) continue;
    played += 1;
    const violation = violations.find(({ invariant }) => invariant === planted.violates);
    if (violation !== undefined) return { seed, what: violation.what, played, next: seed + 1 };
  }
  return { played, next: seed };
}
