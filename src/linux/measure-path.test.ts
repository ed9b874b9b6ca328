import { describe, expect, test } from "bun:test";
import { knownMtu, largestPassing, type Patience } from "./measure-path.ts";
import type { DatagramSocket } from "./unchecked-datagrams.ts";

const patience: Patience = {
  ...{ tries: 2, replyMilliseconds: 20, wait: async () => {} },
  signal: new AbortController().signal,
};

/** Each hop carries so much; those that are not silent tell the sender what, one at a time. */
function pathOf(own: number, hops: readonly { readonly mtu: number; readonly isSilent?: boolean }[]): DatagramSocket {
  let known = own;
  let isAnswered = false;
  return {
    mtu: () => known,
    ask(size) {
      const narrow = hops.find(({ mtu }) => size > mtu);
      isAnswered = narrow === undefined;
      if (narrow?.isSilent === false) known = Math.min(known, narrow.mtu);
    },
    isAnswered: () => isAnswered,
    askMany() {},
    countAnswers: () => 0,
    close() {},
  };
}

describe("knownMtu()", () => {
  test("hears every hop that is narrower than the one before", async () => {
    const path = pathOf(1500, [
      { mtu: 1450, isSilent: false },
      { mtu: 1430, isSilent: false },
    ]);
    expect(await knownMtu(path, patience)).toBe(1430);
    expect(await largestPassing(path, { family: 4, mtu: 1430 }, patience)).toBe(1430);
  });

  test("is what the kernel believes if a narrow hop is silent, of which only the largest packet that passes tells", async () => {
    const path = pathOf(1500, [
      { mtu: 1450, isSilent: false },
      { mtu: 1400, isSilent: true },
    ]);
    expect(await knownMtu(path, patience)).toBe(1450);
    expect(await largestPassing(path, { family: 4, mtu: 1450 }, patience)).toBe(1400);
  });

  test("ends if hops say something smaller each time", async () => {
    const path = { ...pathOf(1500, [{ mtu: 0 }]) };
    let believed = 1500;
    expect(await knownMtu({ ...path, mtu: () => (believed -= 1) }, patience)).toBeGreaterThan(1400);
  });
});

describe("largestPassing()", () => {
  test.each([0, 1, 3, 5])("tells no size if the other end goes after %d packets have passed", async (passing) => {
    const path = pathOf(1450, [{ mtu: 1400, isSilent: true }]);
    let left = passing;
    const isAnswered = () => {
      if (!path.isAnswered() || left === 0) return false;
      left -= 1;
      return true;
    };
    expect(await largestPassing({ ...path, isAnswered }, { family: 4, mtu: 1450 }, patience)).toBeUndefined();
  });
});
