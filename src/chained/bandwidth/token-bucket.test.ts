import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { tokenBucketOf } from "./token-bucket.ts";

const MTU = 1500;
const FRAME = MTU + 18;
const CONTAINERD = undefined;

describe("tokenBucketOf()", () => {
  test.each([
    // The same numbers as upstream's, unless those would not work.
    ["10 Mbit, 1 Mbit", 10_000_000n, 1_000_000n, { rate: 1_250_000n, burst: 125_000, limit: 156_250 }],
    ["1 Gbit, 100 Mbit", 10n ** 9n, 10n ** 8n, { rate: 125_000_000n, burst: 12_500_000, limit: 15_625_000 }],
    // The burst has room for a frame, the queue for ten.
    ["8 bit, 8 bit", 8n, 8n, { rate: 1n, burst: FRAME, limit: 11 * FRAME }],
    ["1 Mbit, 20 kbit", 1_000_000n, 20_000n, { rate: 125_000n, burst: 2500, limit: 2500 + 10 * FRAME }],
    // A burst that no user chose is a tenth of a second of the rate.
    ["10 Mbit, unchosen", 10_000_000n, CONTAINERD, { rate: 1_250_000n, burst: 125_000, limit: 156_250 }],
    ["1 Mbit, unchosen", 1_000_000n, CONTAINERD, { rate: 125_000n, burst: 12_500, limit: 12_500 + 10 * FRAME }],
    // A chosen burst is kept, up to what overflows the kernel's counter.
    ["10 Mbit, 4 GB", 10_000_000n, 34_359_738_359n, { rate: 1_250_000n, burst: 342_500_000, limit: 342_531_250 }],
    [
      "1 Gbit, 4 GB",
      10n ** 9n,
      34_359_738_359n,
      { rate: 125_000_000n, burst: 2 ** 32 - 1 - 3_125_000, limit: 2 ** 32 - 1 },
    ],
    ["1 Pbit, 1 bit", 10n ** 15n, 1n, { rate: 125n * 10n ** 12n, burst: 2 ** 31, limit: 2 ** 32 - 1 }],
  ])("%s", (_name, rate, burst, bucket) => {
    expect(tokenBucketOf({ rate, burst }, MTU)).toEqual(bucket);
  });

  const rates = fc.bigInt(8n, 2n ** 64n - 1n);
  const bursts = fc.option(fc.bigInt(1n, 0xffffffffn * 8n - 1n), { nil: undefined });
  const mtus = fc.integer({ min: 68, max: 65_535 });

  test("returns numbers that fit in 32 bits, a burst of at least a frame and a queue of at least ten", () => {
    fc.assert(
      fc.property(rates, bursts, mtus, (rate, burst, mtu) => {
        const bucket = tokenBucketOf({ rate, burst }, mtu);

        expect(bucket.limit).toBeLessThanOrEqual(0xffffffff);
        expect(bucket.burst).toBeGreaterThanOrEqual(mtu + 18);
        expect(bucket.limit - bucket.burst).toBeGreaterThanOrEqual(10 * (mtu + 18));
      }),
    );
  });

  test("lets at most twice the rate pass in the first second if no user chose the burst", () => {
    fc.assert(
      fc.property(fc.bigInt(100_000n, 10n ** 15n), (rate) => {
        const bucket = tokenBucketOf({ rate, burst: undefined }, MTU);

        expect(BigInt(bucket.burst)).toBeLessThanOrEqual(bucket.rate);
      }),
    );
  });
});
