import { expect, test } from "bun:test";
import { NO_OPTIONS, OPERATOR_FACTS } from "../../../../test/support/setting-steps.ts";
import type { UpgradeOptions } from "../../engine/options.ts";
import type { PlanningSite } from "../../engine/step.ts";
import { unlockStep } from "./step.ts";

test.each<[number, Partial<UpgradeOptions>, number]>([
  [1, {}, 115],
  [100, {}, 5],
  [1, { lockSeconds: 30 }, 15],
])(
  "the estimate with %d nodes and %o includes what is left of the lock's time after the rolling update",
  async (count, more, seconds) => {
    const nodes = Array.from({ length: count }, (_, index) => `node-${index}`);
    const facts = { ...OPERATOR_FACTS, storage: "former", nodes };
    const site = { facts, options: { ...NO_OPTIONS, ...more } } as unknown as PlanningSite;

    expect((await unlockStep.plan(site))?.estimatedSeconds).toBe(seconds);
  },
);
