/** Prints the progress of a run: a line for each event, or JSON. */

import { counted } from "../../counted.ts";
import type { RunEvent } from "../../upgrade/engine/run.ts";
import { durationText } from "../../upgrade/engine/wording.ts";
import { STEPS } from "../../upgrade/steps.ts";
import { type Given, wantsJson } from "../main/command.ts";
import type { Call, Terminal } from "../main/context.ts";
import { paint } from "../terminal/paint.ts";

export function reportEvents(context: Call & Terminal, given: Given): (event: RunEvent) => void {
  const { bold, green, yellow } = paint(context);
  if (wantsJson(given)) return (event) => context.stdout(`${JSON.stringify(event)}\n`);
  return (event) => {
    switch (event.kind) {
      case "backed-up":
        return context.stdout(`Backed up ${counted(event.objects, "object")}\n`);
      case "begun":
        context.stdout(
          `${bold(`[${event.number}/${event.of}] ${event.title}`)}${estimateText(event.estimatedSeconds)}\n`,
        );
        if (isWithoutReturn(event)) context.stdout(`      ${yellow("Point of no return:")} ${NO_RETURN}\n`);
        return;
      case "progress":
        return context.stdout(`      ${event.line}\n`);
      case "done":
        return context.stdout(`      ${green(OUTCOMES[event.outcome])}${timeText(event.seconds)}\n`);
    }
  };
}

const NO_RETURN = "when this step has changed something, the upgrade cannot be rolled back any more";

/** A rollback has no estimates. */
function isWithoutReturn({ step, estimatedSeconds }: Extract<RunEvent, { kind: "begun" }>): boolean {
  return estimatedSeconds !== undefined && STEPS.some((each) => each.name === step && each.isPointOfNoReturn);
}

function estimateText(seconds: number | undefined): string {
  return seconds === undefined ? "" : `, ${durationText(seconds)}`;
}

function timeText(seconds: number): string {
  return seconds < 1 ? "" : ` in ${Math.round(seconds)} s`;
}

const OUTCOMES = {
  changed: "done",
  unchanged: "nothing to do",
  "already done": "already done",
  "rolled back": "rolled back",
  kept: "stays as it is",
} as const;
