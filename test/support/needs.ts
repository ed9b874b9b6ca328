/**
 * What a test needs from its host. If something is missing, the test is skipped,
 * and its name says why:
 *
 *   testNeeding(root, program("nft"))("drops what no rule allows", () => { … });
 */
import { test } from "bun:test";
import type { Program } from "../../scripts/programs/table.ts";

/** The reason why it is missing, or `undefined` if it is available. */
type Need = string | undefined;

export const root: Need = process.getuid?.() === 0 ? undefined : "needs root";

export function program(name: Program): Need {
  return Bun.which(name) === null ? `needs the program ${name}` : undefined;
}

export function testNeeding(...needs: readonly Need[]) {
  const reasons = needs.filter((reason) => reason !== undefined);
  return (title: string, body: () => void | Promise<void>, limitMilliseconds?: number): void => {
    if (reasons.length === 0) test(title, body, limitMilliseconds);
    else test.skip(`${title} (skipped: ${reasons.join(", ")})`, body);
  };
}
