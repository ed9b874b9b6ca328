import { expect, test } from "bun:test";
import { EventEmitter } from "node:events";
import { ProcessKilled } from "../schedule/process.ts";
import { generateScript } from "../script/generate.ts";
import type { Operation } from "../script/operation.ts";
import { catchExceptions } from "./exceptions.ts";
import { runScript } from "./run-script.ts";

const SCRIPT = { ...generateScript(1), nodes: ["node-1"] };

/** It has no CIDR to make a record of. */
const REJECTED = { at: 10, kind: "apply pool", pool: { name: "pool-1" } } as unknown as Operation;

test("an operation that rejects is a violation of its script", async () => {
  const { violations, violatedAt } = await runScript({ ...SCRIPT, operations: [REJECTED] });

  expect(violations).toEqual([{ invariant: "no exception", what: expect.stringContaining("TypeError") }]);
  expect(violatedAt).toBe(30_010);
});

test("an event that throws is a violation of its script", async () => {
  const lines: string[] = [];
  const trace = (line: string) => {
    lines.push(line);
    if (line.includes("create pod")) throw new Error("cannot write the trace");
  };
  const create = { kind: "create pod", namespace: "red", name: "web", node: "node-1", labels: {} } as const;
  const { violations } = await runScript({ ...SCRIPT, operations: [{ at: 10, ...create }] }, { trace });

  expect(violations).toEqual([{ invariant: "no exception", what: expect.stringContaining("cannot write the trace") }]);
});

test("what the code of a dead process says is none", async () => {
  const found: unknown[] = [];
  const events = new EventEmitter();
  await catchExceptions(
    async () => void events.emit("unhandledRejection", new ProcessKilled("it is dead")),
    (failure) => found.push(failure),
    events,
  );

  expect(found).toEqual([]);
});

test("what ends the work half way is one, whoever says it", async () => {
  const found: unknown[] = [];
  const failure = new ProcessKilled("it is dead");
  await catchExceptions(
    () => Promise.reject(failure),
    (each) => found.push(each),
  );

  expect(found).toEqual([failure]);
});

test("a rejection that nobody handles is one, while the work lasts", async () => {
  const found: unknown[] = [];
  const events = new EventEmitter();
  await catchExceptions(
    async () => void events.emit("unhandledRejection", "nobody hears"),
    (failure) => found.push(failure),
    events,
  );
  events.emit("unhandledRejection", "too late");

  expect(found).toEqual(["nobody hears"]);
});
