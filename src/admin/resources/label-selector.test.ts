import { describe, expect, test } from "bun:test";
import { selects } from "../../selector/selector.ts";
import { UsageError } from "../main/command.ts";
import { parseLabelSelector } from "./label-selector.ts";

const NODES = {
  n1: { rack: "a", disk: "ssd", "example.org/zone": "east" },
  n2: { rack: "b" },
  n3: { rack: "", old: "yes" },
};

describe("parseLabelSelector()", () => {
  test.each([
    ["rack=a", ["n1"]],
    ["rack==a", ["n1"]],
    ["rack = a", ["n1"]],
    ["rack!=a", ["n2", "n3"]],
    ["rack=", ["n3"]],
    ["disk", ["n1"]],
    ["!disk", ["n2", "n3"]],
    ["rack=a,disk=ssd", ["n1"]],
    ["rack=a,disk=hdd", []],
    ["rack in (a,b)", ["n1", "n2"]],
    ["rack in ( a , b ),!disk", ["n2"]],
    ["rack notin (a),!old", ["n2"]],
    ["example.org/zone=east", ["n1"]],
    ["rack == 'a'", ["n1"]],
    ["rack in {'a', 'b'} && !has(disk)", ["n2"]],
    ["all()", ["n1", "n2", "n3"]],
    ["has(old) || disk == 'ssd'", ["n1", "n3"]],
  ])("%s", (text, expected) => {
    const selector = parseLabelSelector(text);

    expect(Object.entries(NODES).flatMap(([name, labels]) => (selects(selector, labels) ? [name] : []))).toEqual(
      expected,
    );
  });

  test.each([
    ["rack=a b", '"rack=a b" is neither'],
    ["rack>5", '"rack>5"'],
    ["a=b,,c=d", '""'],
    ["a in b", '"a in b"'],
    ["rack == 'a", "position"],
    ["rack == 'a' &&", "position"],
  ])("refuses %p and says what is wrong", (text, reason) => {
    expect(() => parseLabelSelector(text)).toThrow(UsageError);
    expect(() => parseLabelSelector(text)).toThrow(reason);
  });
});
