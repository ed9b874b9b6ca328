/**
 * Converts a rate in bits to the parameters of the kernel's token bucket, with
 * integers that cannot overflow.
 *
 *   tokens flow in at `rate`   ──>  [ bucket of `burst` ]  ──>  packets with enough tokens pass at once
 *                                                               up to `limit` bytes wait for tokens, the rest is dropped
 */
import type { TokenBucket } from "../../linux/rtnetlink/qdisc.ts";
import type { Rate } from "./bandwidth.ts";

/** A burst that no user chose: enough for full speed, and in the first second at most a tenth more than the rate passes. */
const UNCHOSEN_BURST_DIVISOR = 10n;
/** The burst must hold what arrives between two ticks of a slow kernel clock. */
const CLOCK_TICKS = 250n;
/** A packet waits in the queue at most this fraction of a second: 25 milliseconds. */
const WAIT_DIVISOR = 40n;
/** TCP needs at least these at low rates, at which 25 milliseconds are less than a packet. */
const MINIMUM_QUEUED_FRAMES = 10n;
/** A longer burst overflows the kernel's counter (32 bits, 64 ns each). */
const LONGEST_BURST_SECONDS = 274n;
/** The Ethernet header with a VLAN tag. */
const FRAME_HEADER = 18n;
const LARGEST = 0xffffffffn;

export function tokenBucketOf({ rate: bits, burst: burstBits }: Rate, mtu: number): TokenBucket {
  const rate = bits / 8n;
  const frame = BigInt(mtu) + FRAME_HEADER;
  const queued = smaller(larger(rate / WAIT_DIVISOR, MINIMUM_QUEUED_FRAMES * frame), LARGEST / 2n);

  const asked = burstBits === undefined ? rate / UNCHOSEN_BURST_DIVISOR : burstBits / 8n;
  const needed = larger(frame, rate / CLOCK_TICKS);
  const burst = smaller(larger(smaller(asked, rate * LONGEST_BURST_SECONDS), needed), LARGEST - queued);
  return { rate, burst: Number(burst), limit: Number(burst + queued) };
}

function smaller(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}

function larger(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}
