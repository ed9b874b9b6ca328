import { expect, test } from "bun:test";
import { GcTurns } from "./gc-turns.ts";

test("a GC waits for the calls before it, and the calls after it wait for the GC", async () => {
  const turns = new GcTurns();
  const events: string[] = [];
  const first = Promise.withResolvers<void>();
  const gc = Promise.withResolvers<void>();
  const all = [
    turns.beside(() => first.promise.then(() => events.push("first ADD ends"))),
    turns.alone(() => {
      events.push("GC begins");
      return gc.promise.then(() => events.push("GC ends"));
    }),
    turns.beside(async () => events.push("second ADD")),
    turns.alone(async () => events.push("second GC")),
  ];
  await Promise.resolve();
  expect(events).toEqual([]);
  first.resolve();
  await all[0];
  await Promise.resolve();
  expect(events).toEqual(["first ADD ends", "GC begins"]);
  gc.resolve();
  await Promise.all(all);
  expect(events).toEqual(["first ADD ends", "GC begins", "GC ends", "second ADD", "second GC"]);
});
