/** What the person sees: one line for each step, with what was seen and how long it took. */
import { type Paint, paint } from "../../src/admin/paint.ts";

/** What a step has to say: a few words behind its title, and lines below it. */
export interface Seen {
  readonly seen: string;
  readonly shown?: string;
}

export interface Screen {
  title(text: string): void;
  /** Does the work and tells of it; its failure is told, too, and passed on. */
  step<Outcome extends Seen>(title: string, work: () => Promise<Outcome>): Promise<Outcome>;
  failed(): boolean;
  end(text: string): void;
}

const TITLE_WIDTH = 27;
const TIME_WIDTH = 7;

export function openScreen(stop: AbortSignal): Screen {
  const colours = paint({ env: process.env, isTerminal: process.stdout.isTTY });
  let failures = 0;
  const tell = (mark: string, title: string, text: string, started: number) => {
    if (stop.aborted) return;
    const taken = `${(performance.now() - started).toFixed(0)} ms`;
    console.log(`  ${mark} ${colours.bold(title.padEnd(TITLE_WIDTH))} ${taken.padStart(TIME_WIDTH)}  ${text}`);
  };
  return {
    title: (text) => console.log(`\n${colours.bold(text)}\n`),
    async step(title, work) {
      const started = performance.now();
      try {
        const outcome = await work();
        tell(colours.green("✓"), title, outcome.seen, started);
        if (outcome.shown !== undefined && !stop.aborted) console.log(indented(outcome.shown, colours));
        return outcome;
      } catch (failure) {
        failures += 1;
        tell(colours.red("✗"), title, failure instanceof Error ? failure.message : String(failure), started);
        throw failure;
      }
    },
    failed: () => failures > 0,
    end: (text) => console.log(`\n${text}`),
  };
}

function indented(text: string, { bold }: Paint): string {
  const [header = "", ...lines] = text.trimEnd().split("\n");
  return ["", `      ${bold(header)}`, ...lines.map((line) => `      ${line}`), ""].join("\n");
}
