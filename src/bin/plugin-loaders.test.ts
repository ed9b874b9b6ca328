import { describe, expect, test } from "bun:test";
import { servedPlugin } from "./plugin-loaders.ts";

describe("servedPlugin()", () => {
  for (const name of ["plugin", "ipam", "hostLocal", "portmap", "bandwidth"]) {
    test(`accepts "${name}"`, () => {
      expect(servedPlugin(name)).toBeDefined();
    });
  }

  for (const name of ["constructor", "toString", "hasOwnProperty", "__proto__", "node", ""]) {
    test(`refuses "${name}"`, () => {
      expect(servedPlugin(name)).toBeUndefined();
    });
  }
});
