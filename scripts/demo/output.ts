/** The output of the demo: one line for each step, with its result and duration. */
import { type Paint, paint } from "../../src/admin/terminal/paint.ts";

/** The result of a step: a short summary on its line, and details below it. */
export interface StepResult {
  readonly summary: string;
  readonly details?: string;
}

export interface Output {
  title(text: string): void;
  /** Does the work and prints its result; a failure is printed and thrown again. */
  step<Outcome extends StepResult>(title: string, work: () => Promise<Outcome>): Promise<Outcome>;
  failed(): boolean;
  end(text: string): void;
}

const TITLE_WIDTH = 27;
const TIME_WIDTH = 7;

export function openOutput(stop: AbortSignal): Output {
  const colours = paint({ env: process.env, isTerminal: process.stdout.isTTY });
  let failures = 0;
  const print = (mark: string, title: string, text: string, started: number) => {
    if (stop.aborted) return;
    const taken = durationText(performance.now() - started);
    console.log(`  ${mark} ${colours.bold(title.padEnd(TITLE_WIDTH))} ${taken.padStart(TIME_WIDTH)}  ${text}`);
  };
  return {
    title: (text) => console.log(`\n${colours.bold(text)}\n`),
    async step(title, work) {
      const started = performance.now();
      try {
        const outcome = await work();
        print(colours.green("✓"), title, outcome.summary, started);
        if (outcome.details !== undefined && !stop.aborted) console.log(indented(outcome.details, colours));
        return outcome;
      } catch (failure) {
        failures += 1;
        print(colours.red("✗"), title, failure instanceof Error ? failure.message : String(failure), started);
        throw failure;
      }
    },
    failed: () => failures > 0,
    end: (text) => console.log(`\n${text}`),
  };
}

function durationText(milliseconds: number): string {
  return milliseconds < 10_000 ? `${milliseconds.toFixed(0)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}

function indented(text: string, { bold }: Paint): string {
  const [header = "", ...lines] = text.trimEnd().split("\n");
  return ["", `      ${bold(header)}`, ...lines.map((line) => `      ${line}`), ""].join("\n");
}
