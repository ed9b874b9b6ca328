/**
 * The requests byte for byte as iproute2 6.1 sends them: captured with `strace -e write=all`, without header and rate
 * table. The header differs on purpose: ours never has the flag `replace`. No kernel since 3.9 reads the rate table.
 */
import { describe, expect, test } from "bun:test";
import { encodeRequests, type NetlinkRequest } from "../netlink/request.ts";
import { HEADER_LENGTH } from "../netlink/wire.ts";
import { bufferTicks, deleteIngressHook, ensureIngressHook, setTokenBucket } from "./qdisc.ts";
import { deleteIngressRedirect, redirectIngress } from "./redirect.ts";

const link = { index: 3, name: "vt0" };
const filter = { kind: "u32", handle: 0x80000800, isInPlace: true };

const GOLDEN: readonly (readonly [command: string, request: NetlinkRequest, payload: string])[] = [
  [
    "tc qdisc replace dev vt0 root handle 1: tbf rate 10mbit burst 125000 limit 156250",
    setTokenBucket(link, { rate: 1_250_000n, burst: 125_000, limit: 156_250 }),
    "000000000300000000000100ffffffff000000000800010074626600340002002800010003010000ffff0000d01213000000000000000000000000005a62020084d71700000000000800060048e80100",
  ],
  [
    "tc qdisc add dev vt0 ingress",
    ensureIngressHook(link),
    "00000000030000000000fffff1ffffff000000000c000100696e677265737300",
  ],
  [
    "tc filter replace dev vt0 ingress protocol all prio 1 handle 800::800 u32 match u32 0 0 action mirred egress redirect dev ifb9",
    redirectIngress(link, 4, filter),
    "000000000300000000080080f2ffffff0003010008000100753332006000020038000700340001000b0001006d69727265640000240002802000020000000000000000000400000000000000000000000100000004000000240005000100010000000000000000000000000000000000000000000000000000000000",
  ],
  [
    "tc filter del dev vt0 ingress protocol all prio 1 handle 800::800 u32",
    deleteIngressRedirect(link, filter),
    "000000000300000000080080f2ffffff000301000800010075333200",
  ],
  [
    "tc qdisc del dev vt0 ingress",
    deleteIngressHook(link),
    "00000000030000000000fffff1ffffff000000000c000100696e677265737300",
  ],
];

describe("encodeRequests()", () => {
  test.each(GOLDEN)("writes what `%s` writes", (_command, request, payload) => {
    expect(encodeRequests([request], 0).subarray(HEADER_LENGTH).toHex()).toBe(payload);
  });

  test("writes a rate above 32 bits in 64 bits too", () => {
    const bytes = encodeRequests([setTokenBucket(link, { rate: 12_500_000_000n, burst: 9000, limit: 90_000 })], 0);

    expect(bytes.toHex()).toEndWith("080006002823000" + "00c00040000dd0ee902000000");
    expect(bytes.toHex()).toContain("ffff0000ffffffff");
  });
});

describe("bufferTicks()", () => {
  test.each([
    [1_250_000n, 125_000, 1_562_500],
    [1n, 1518, (1518 * 15_625_000) % 2 ** 32],
  ])("at %d bytes per second %d bytes take %d ticks, with the kernel's overflow", (rate, burst, ticks) => {
    expect(bufferTicks({ rate, burst })).toBe(ticks);
  });
});
