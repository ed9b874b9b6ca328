/**
 * From a rate in bits to the numbers of the kernel's token bucket, in whole
 * numbers that cannot overflow.
 *
 *   tokens flow in at `rate`   ──>  [ bucket of `burst` ]  ──>  packets that find tokens pass at once
 *                                                               up to `limit` bytes wait for theirs, the rest is dropped
 */
import type { TokenBucket } from "../../linux/rtnetlink/qdisc.ts";
import type { Rate } from "./bandwidth.ts";

/** The burst nobody chose: large enough for full speed, and the first second stays within a tenth of the rate. */
const UNCHOSEN_BURST_DIVISOR = 10n;
/** What arrives between two ticks of a slow kernel's clock must fit. */
const CLOCK_TICKS = 250n;
/** A packet waits at most this part of a second behind a full bucket: 25 milliseconds. */
const WAIT_DIVISOR = 40n;
/** Fewer make TCP stumble at low rates, where 25 milliseconds are less than a packet. */
const LEAST_WAITING_FRAMES = 10n;
/** Above this the kernel's own account of a burst (32 bits, 64 ns each) wraps. */
const LONGEST_BURST_SECONDS = 274n;
/** Ethernet's header, with a VLAN tag. */
const FRAME_HEADER = 18n;
const LARGEST = 0xffffffffn;

export function tokenBucketOf({ rate: bits, burst: burstBits }: Rate, mtu: number): TokenBucket {
  const rate = bits / 8n;
  const frame = BigInt(mtu) + FRAME_HEADER;
  const waiting = least(largest(rate / WAIT_DIVISOR, LEAST_WAITING_FRAMES * frame), LARGEST / 2n);

  const asked = burstBits === undefined ? rate / UNCHOSEN_BURST_DIVISOR : burstBits / 8n;
  const needed = largest(frame, rate / CLOCK_TICKS);
  const burst = least(largest(least(asked, rate * LONGEST_BURST_SECONDS), needed), LARGEST - waiting);
  return { rate, burst: Number(burst), limit: Number(burst + waiting) };
}

function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}

function largest(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}
