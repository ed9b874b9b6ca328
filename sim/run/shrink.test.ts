import { describe, expect, test } from "bun:test";
import { generateScript } from "../script/generate.ts";
import type { Script } from "../script/operation.ts";
import { shrinkScript } from "./shrink.ts";

const script = generateScript(2);

describe("shrinkScript()", () => {
  test("leaves the operations that a failure needs, in their order", async () => {
    const needed = [3, 11, 17].map((index) => script.operations[index]);
    const fails = async ({ operations }: Script) => needed.every((each) => operations.some((other) => other === each));
    const { operations, ...rest } = await shrinkScript(script, fails);

    expect([...operations]).toEqual(needed as typeof operations as never);
    expect(rest).toEqual({ ...rest, seed: script.seed, nodes: script.nodes });
  });

  test("gives up after some attempts, with a script that fails", async () => {
    let attempts = 0;
    const fails = async ({ operations }: Script) => {
      attempts += 1;
      return operations.length > 20;
    };
    const shrunk = await shrinkScript(script, fails, 5);

    expect(attempts).toBe(5);
    expect(shrunk.operations.length).toBeGreaterThan(20);
  });
});
