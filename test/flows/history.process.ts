/**
 * A history that is written to: `history.process.ts DIRECTORY MODE`.
 *
 *   endless     until it is killed; prints a line for each second's records that are stored
 *   full-disk   the directory is on a small filesystem, filled while it runs; prints what was counted and found
 */
import { rmSync, writeFileSync } from "node:fs";
import { FlowHistory } from "../../src/agent/flows/history/flow-history.ts";
import { flowStream, seededRandom } from "../support/random-flows.ts";

const [directory = "", mode = ""] = process.argv.slice(2);
const warnings: string[] = [];
const history = new FlowHistory({
  ...{
    directory: `${directory}/flows`,
    node: "one",
    now: Date.now,
    elapsed: () => performance.now(),
    warn: (message: string) => warnings.push(message),
  },
  settings: { limits: { bytes: 50_000_000, milliseconds: 86_400_000 }, logFile: `${directory}/flows.log` },
});
// Other IDs than those of the writer before.
const stream = flowStream(`one-${process.pid}`, seededRandom(Date.now()));

function put(count: number): void {
  history.put(
    Array.from({ length: count }, () => ({ record: stream.next(Date.now()) })),
    [],
  );
}

/** Stores what was put, as each question does. */
async function flows(last: number): Promise<{ readonly found: number; readonly problems: readonly string[] }> {
  const answers = await Array.fromAsync(
    history.answer({ kind: "flows", query: { last }, follow: false }, new AbortController().signal),
  );
  return {
    found: answers.filter((answer) => "flow" in answer).length,
    problems: answers.flatMap((answer) => ("problem" in answer ? answer.problem.message : [])),
  };
}

if (mode === "endless") {
  for (;;) {
    put(500);
    await flows(1);
    console.log("stored");
  }
}
put(1_000);
const before = await flows(10);
try {
  writeFileSync(`${directory}/fill`, new Uint8Array(100_000_000));
} catch {
  // As much as fits.
}
for (let round = 0; round < 20; round++) {
  put(1_000);
  await flows(10);
}
const full = { ...history.losses, ...(await flows(10)) };
rmSync(`${directory}/fill`);
put(1_000);
const after = await flows(5);
const { notStored, notLogged } = history.losses;
put(200);
await flows(1);
console.log(
  JSON.stringify({
    ...{ before, full, after, warnings },
    more: [history.losses.notStored - notStored, history.losses.notLogged - notLogged],
  }),
);
await history.close();
