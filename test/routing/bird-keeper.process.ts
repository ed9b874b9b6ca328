/**
 * What the node agent does with BIRD, for a plan in a file: `bun bird-keeper.process.ts DIRECTORY`. Follows `plan.json` in
 * the directory until it is killed; BIRD goes on.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { birdCommand } from "../../src/agent/bgp/bird-command.ts";
import { BirdKeeper } from "../../src/agent/bgp/bird-keeper.ts";
import { birdProgram } from "../../src/agent/bgp/bird-program.ts";
import { SYSTEM_CLOCK } from "../../src/datastore/replica/clock.ts";
import { birdFiles } from "../../src/routing/bird/bird-files.ts";
import { readPlan } from "./planned-bgp.ts";

const [, , directory = ""] = process.argv;
const POLL_MILLISECONDS = 20;
const logFile = join(directory, "log", "bird.log");
const { signal } = new AbortController();
const keeper = new BirdKeeper({
  program: birdProgram(birdFiles(directory), {
    logFile,
    command: () => birdCommand({ path: "", inContainer: () => undefined }),
  }),
  settings: { logFile, ownInterfaces: ["pod*"], agentProtocol: 86 },
  report: (message, level) => console.log(level, message),
  elapsed: () => performance.now(),
  now: () => new Date(),
  wait: SYSTEM_CLOCK.wait,
});
void keeper.run(signal);
for (let last = ""; ; await Bun.sleep(POLL_MILLISECONDS)) {
  const text = readFileSync(join(directory, "plan.json"), "utf8");
  if (text !== last) keeper.update(() => readPlan(text));
  last = text;
}
