/**
 * Plays one seed after another whose script concerns a planted bug, until its invariant is violated:
 *
 *   bun sim/planted/search-seeds.process.ts PATCH MINUTES
 *
 * Writes what was found as JSON, or `{}`.
 */
import { runScript } from "../run/run-script.ts";
import { generateScript } from "../script/generate.ts";
import { PLANTED_BUGS, type PlantedBug } from "./planted-bugs.ts";

const [patch, minutes] = process.argv.slice(2);
const bug = PLANTED_BUGS.find((each) => each.patch === patch);
if (bug === undefined) throw new Error(`There is no planted bug "${patch}"`);
console.log(JSON.stringify((await search(bug, performance.now() + Number(minutes) * 60_000)) ?? {}));
process.exit(0);

async function search({ concerns, violates }: PlantedBug, end: number) {
  for (let seed = 1; performance.now() < end; seed += 1) {
    const script = generateScript(seed);
    if (!concerns(script)) continue;
    const violation = (await runScript(script)).violations.find(({ invariant }) => invariant === violates);
    if (violation !== undefined) return { seed, what: violation.what };
  }
  return undefined;
}
