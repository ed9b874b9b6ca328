import { describe, expect, test } from "bun:test";
import { isPluginPart } from "./plugin-loaders.ts";

describe("isPluginPart()", () => {
  for (const name of ["plugin", "ipam", "hostLocal", "portmap", "bandwidth"]) {
    test(`accepts "${name}"`, () => {
      expect(isPluginPart(name)).toBe(true);
    });
  }

  for (const name of ["constructor", "toString", "hasOwnProperty", "__proto__", "node", ""]) {
    test(`refuses "${name}"`, () => {
      expect(isPluginPart(name)).toBe(false);
    });
  }
});
