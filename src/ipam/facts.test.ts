import { describe, expect, test } from "bun:test";
import { DecodedEntries, Facts } from "./facts.ts";

describe("Facts.decode()", () => {
  const entry = { key: "/k", value: "text", revision: "1" };

  test("decodes an entry once, also for the facts of a later call that shares what was decoded", () => {
    let times = 0;
    const decoder = () => {
      times += 1;
      return { read: "once" };
    };
    const shared = new DecodedEntries();
    const first = new Facts(shared).decode(entry, decoder);

    expect(new Facts(shared).decode(entry, decoder)).toBe(first);
    expect(times).toBe(1);
    expect(new Facts().decode(entry, decoder)).not.toBe(first);
  });

  test("decodes it anew for another reader, and another entry though it looks alike", () => {
    const lengthOf = (each: { readonly value: string }) => ({ length: each.value.length });
    const upperCase = (each: { readonly value: string }) => ({ text: each.value.toUpperCase() });
    const facts = new Facts();

    expect(facts.decode(entry, lengthOf)).toEqual({ length: 4 });
    expect(facts.decode(entry, upperCase)).toEqual({ text: "TEXT" });
    expect(facts.decode({ ...entry }, lengthOf)).not.toBe(facts.decode(entry, lengthOf));
  });
});
