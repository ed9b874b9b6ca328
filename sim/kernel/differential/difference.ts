/** One random sequence of requests to both kernels: where they differ, if they do. */
import { Random } from "../../schedule/random.ts";
import {
  carryOut,
  describeState,
  type KernelUnderTest,
  openModelKernel,
  openRealKernel,
  readEvents,
} from "./both-kernels.ts";
import { type Operation, randomOperations } from "./operation.ts";

const LENGTH = 30;
/** The kernel does some of its work in a thread of its own. */
const PATIENCE_MILLISECONDS = 700;

/** The sequence up to the difference, with its seed; `undefined` if there is none. */
export async function differenceIn(seed: number): Promise<string | undefined> {
  const real = openRealKernel();
  try {
    const model = openModelKernel(seed);
    const operations = randomOperations(new Random(seed), LENGTH);
    const done: string[] = [];
    for (const operation of operations) {
      if (canRemove(operation)) await agreement(() => differences(describeState(real), describeState(model)));
      const [truth, answer] = await answers(real, model, operation);
      done.push(`${operation.side}: ${operation.text} -> ${truth}`);
      if (truth !== answer) return report(seed, done, [`Linux: ${truth}`, `model: ${answer}`]);
      real.settle();
      model.settle();
    }
    const lines = await agreement(() => differences(describeState(real), describeState(model)));
    if (lines.length > 0) return report(seed, done, lines);
    const told: [string[], string[]] = [[], []];
    const wrong = await agreement(() => {
      told[0].push(...readEvents(real));
      told[1].push(...readEvents(model));
      return differences(numbered(told[0]), numbered(told[1]));
    });
    return wrong.length === 0 ? undefined : report(seed, done, ["events:", ...wrong]);
  } finally {
    real.close();
  }
}

/** What the kernel is still about to do is not done to something that is removed before. */
function canRemove({ text }: Operation): boolean {
  return /^(remove|down|delete|change)/.test(text);
}

async function answers(real: KernelUnderTest, model: KernelUnderTest, operation: Operation) {
  const answer = carryOut(model, operation);
  let truth = carryOut(real, operation);
  if (operation.kind === "look up") {
    await agreement(() => {
      truth = carryOut(real, operation);
      return truth === answer ? [] : [truth];
    });
  }
  return [truth, answer] as const;
}

/** Asks until there is no difference, or the patience is over. */
async function agreement(compare: () => readonly string[]): Promise<readonly string[]> {
  const limit = performance.now() + PATIENCE_MILLISECONDS;
  for (;;) {
    const lines = compare();
    if (lines.length === 0 || performance.now() > limit) return lines;
    await Bun.sleep(2);
  }
}

/** The first and the second of equal lines are different lines. */
function numbered(lines: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  return lines.map((line) => {
    const count = (counts.get(line) ?? 0) + 1;
    counts.set(line, count);
    return `${line} #${count}`;
  });
}

function differences(truth: readonly string[], model: readonly string[]): readonly string[] {
  return [
    ...truth.filter((line) => !model.includes(line)).map((line) => `only Linux: ${line}`),
    ...model.filter((line) => !truth.includes(line)).map((line) => `only the model: ${line}`),
  ];
}

function report(seed: number, done: readonly string[], lines: readonly string[]): string {
  return [`seed ${seed}:`, ...done.map((line) => `  ${line}`), ...lines].join("\n");
}
