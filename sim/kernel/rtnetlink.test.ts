import { describe, expect } from "bun:test";
import { root, testNeeding } from "../../test/support/needs.ts";
import { proofSize } from "../../test/support/proof-size.ts";
import { differenceIn } from "./differential/difference.ts";

const SEQUENCES = proofSize({ everyDay: 60, soak: 1000 });
const ENOUGH_FAILURES = 3;
const LIMIT_MILLISECONDS = 600_000;

describe("the kernel model", () => {
  testNeeding(root)(
    `answers as Linux does, in ${SEQUENCES} random sequences of requests`,
    async () => {
      const failures: string[] = [];
      for (let seed = 1; seed <= SEQUENCES && failures.length < ENOUGH_FAILURES; seed++) {
        const difference = await differenceIn(seed);
        if (difference !== undefined) failures.push(difference);
      }
      expect(failures.join("\n\n")).toBe("");
    },
    LIMIT_MILLISECONDS,
  );
});
