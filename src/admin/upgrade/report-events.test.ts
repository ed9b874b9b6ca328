import { expect, test } from "bun:test";
import type { RunEvent } from "../../upgrade/engine/run.ts";
import type { Given } from "../main/command.ts";
import type { Call, Terminal } from "../main/context.ts";
import { reportEvents } from "./report-events.ts";

const EVENTS: readonly RunEvent[] = [
  { kind: "backed-up", objects: 3 },
  { kind: "begun", step: "definitions", title: "Apply the definitions", number: 1, of: 2, estimatedSeconds: 20 },
  { kind: "progress", step: "definitions", line: "18 definitions applied" },
  { kind: "done", step: "definitions", outcome: "changed", seconds: 12.3 },
  { kind: "begun", step: "chart", title: "Upgrade the chart", number: 2, of: 2 },
  { kind: "done", step: "chart", outcome: "unchanged", seconds: 0.2 },
  { kind: "begun", step: "unlock", title: "Unlock", number: 3, of: 3, estimatedSeconds: 5 },
  { kind: "begun", step: "unlock", title: "Unlock", number: 1, of: 3 },
];

function printed(format: string): string {
  const lines: string[] = [];
  const context = { env: {}, isTerminal: false, stdout: (text: string) => lines.push(text) } as unknown as Call &
    Terminal;
  const given: Given = { operands: [], switches: new Set(), values: new Map([["output", format]]), lists: new Map() };
  const report = reportEvents(context, given);
  for (const event of EVENTS) report(event);
  return lines.join("");
}

test("the progress of a run is a line for each event, with times", () => {
  expect(printed("text")).toBe(`\
Backed up 3 objects
[1/2] Apply the definitions, about 20 s
      18 definitions applied
      done in 12 s
[2/2] Upgrade the chart
      nothing to do
[3/3] Unlock, about 5 s
      Point of no return: when this step has changed something, the upgrade cannot be rolled back any more
[1/3] Unlock
`);
});

test("the progress of a run as JSON is an event on each line", () => {
  const events = printed("json")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

  expect(events).toEqual([...EVENTS]);
});
