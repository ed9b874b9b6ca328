import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { thrownBy } from "../../../test/support/thrown-by.ts";
import { parseBandwidthQuantity } from "./quantity.ts";

const KEY = "kubernetes.io/ingress-bandwidth";

describe("parseBandwidthQuantity()", () => {
  test.each([
    ["10M", 10_000_000n],
    ["1Gi", 2n ** 30n],
    ["500k", 500_000n],
    ["1k", 1000n],
    ["1P", 10n ** 15n],
    ["1000", 1000n],
    ["1.5M", 1_500_000n],
    ["1.5Ki", 1536n],
    [".5G", 500_000_000n],
    ["5.M", 5_000_000n],
    ["+2M", 2_000_000n],
    ["2e6", 2_000_000n],
    ["2E6", 2_000_000n],
    ["12.5E+5", 1_250_000n],
    ["20000000e-3", 20_000n],
    ["1000.0001", 1001n],
    ["9000000m", 9000n],
    ["5000000000000n", 5000n],
  ])("reads %s as %d bits per second", (text, bits) => {
    expect(parseBandwidthQuantity(KEY, text)).toBe(bits);
  });

  test.each([
    "",
    "M",
    ".",
    "10 M",
    " 10M",
    "10m/s",
    "10Mb",
    "ten",
    "-10M",
    "1e",
    "10K",
    "1_000k",
    "0x400",
    "NaN",
    "10Mi5",
    "1ei",
  ])("refuses %j, naming the annotation", (text) => {
    expect(() => parseBandwidthQuantity(KEY, text)).toThrow(KEY);
    expect(thrownBy(() => parseBandwidthQuantity(KEY, text)).kind).toBe("config-invalid");
  });

  test.each(["0", "999", "0.999k", "1.1P", "1Pi", "1E", "9e999", "1e15001"])("refuses %s, outside 1k to 1P", (text) => {
    expect(thrownBy(() => parseBandwidthQuantity(KEY, text)).kind).toBe("config-invalid");
  });

  test("refuses a text of more than 64 characters without reading its number", () => {
    const longest = `${"0".repeat(62)}1M`;
    expect(parseBandwidthQuantity(KEY, longest)).toBe(1_000_000n);
    const failure = thrownBy(() => parseBandwidthQuantity(KEY, `0${longest}`));
    expect([failure.kind, failure.message]).toEqual(["config-invalid", expect.stringContaining("65 characters")]);
    // Nothing but the refusal can be read of so many digits, which would take a fifth of a second.
    expect(() => parseBandwidthQuantity(KEY, `1000.${"0".repeat(250_000)}`)).toThrow("at most 64");
  });

  test("reads a number and its spelling with a suffix as the same rate", () => {
    const suffixes = [
      ["", 1n],
      ["k", 10n ** 3n],
      ["M", 10n ** 6n],
      ["Ki", 2n ** 10n],
      ["Mi", 2n ** 20n],
    ] as const;
    fc.assert(
      fc.property(fc.bigInt(1000n, 100_000_000n), fc.constantFrom(...suffixes), (number, [suffix, factor]) => {
        expect(parseBandwidthQuantity(KEY, `${number}${suffix}`)).toBe(number * factor);
      }),
    );
  });
});
