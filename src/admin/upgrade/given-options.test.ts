import { describe, expect, test } from "bun:test";
import { type Given, UsageError } from "../main/command.ts";
import { upgradeOptions } from "./given-options.ts";

const given = (values: Readonly<Record<string, string>>) =>
  ({ switches: new Set(), values: new Map(Object.entries(values)), lists: new Map() }) as unknown as Given;

describe("upgradeOptions()", () => {
  test.each([{ "node-limit": "10m" }, { "node-limit": "2m", "stall-limit": "2m" }])(
    "%o is refused: the update would stop before it could go on without the node",
    (values) => {
      expect(() => upgradeOptions(given(values))).toThrow(UsageError);
      expect(() => upgradeOptions(given(values))).toThrow(/--node-limit .* shorter than --stall-limit/);
    },
  );

  test("a limit for nodes that is shorter is accepted", () => {
    const options = upgradeOptions(given({ "node-limit": "2m", "stall-limit": "3m", "max-unavailable": "5" }));

    expect(options).toMatchObject({ nodeSeconds: 120, stallSeconds: 180, maxUnavailable: 5 });
  });
});
