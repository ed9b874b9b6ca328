import { describe, expect, test } from "bun:test";
import { sendsWrongVxlanChecksums } from "./checksum-release.ts";

describe("sendsWrongVxlanChecksums()", () => {
  for (const [release, isWrong] of [
    ["4.18.0-553.el8_10.x86_64", true],
    ["5.4.0-190-generic", true],
    ["5.7.19", true],
    ["5.8.0", false],
    ["5.15.0-91-generic", false],
    ["6.1.0-18-amd64", false],
    ["10.0", false],
    ["unknown", false],
  ] as const) {
    test(`${release}: ${isWrong ? "wrong" : "correct"}`, () => {
      expect(sendsWrongVxlanChecksums(release)).toBe(isWrong);
    });
  }
});
