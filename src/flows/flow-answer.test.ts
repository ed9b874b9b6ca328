import { expect, test } from "bun:test";
import { flowLine } from "./flow-answer.ts";

test("a line of an answer has no character that ends it, controls a terminal or turns the direction of text", () => {
  const message = "a\nb\r\u001b[2J \u007f \u0085 \u009b2J \u2028 \u2029 \u202e \u2066 ü";
  const line = flowLine({ problem: { message } });

  expect(line.slice(0, -1)).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  expect(JSON.parse(line)).toEqual({ problem: { message } });
  expect(line.endsWith("\n")).toBe(true);
});
