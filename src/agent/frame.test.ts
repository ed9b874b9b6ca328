import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { decodeFrame, encodeFrame, type Frame, joined } from "./frame.ts";

const frames: fc.Arbitrary<Frame> = fc.record({
  number: fc.nat(0xffff_ffff),
  head: fc.uint8Array({ maxLength: 300 }),
  body: fc.uint8Array({ maxLength: 300 }),
});

describe("a frame", () => {
  test("decodes to what was encoded, whatever its number, head and body", () => {
    fc.assert(
      fc.property(frames, (frame) => {
        expect(decodeFrame(encodeFrame(frame))).toEqual(frame);
      }),
    );
  });

  test("can arrive in any pieces, and is complete only with the last of them", () => {
    fc.assert(
      fc.property(frames, fc.array(fc.nat(1_000)), (frame, cuts) => {
        const bytes = encodeFrame(frame);
        const ends = [...cuts.map((cut) => cut % bytes.length), bytes.length].sort((left, right) => left - right);
        let received: Uint8Array = new Uint8Array(0);
        let start = 0;
        for (const end of ends) {
          received = joined(received, bytes.subarray(start, end));
          start = end;
          const expected = end === bytes.length ? frame : undefined;
          expect(decodeFrame(received)).toEqual(expected as Frame);
        }
      }),
    );
  });

  test("ends where its lengths say, whatever follows, and wherever in a buffer it starts", () => {
    fc.assert(
      fc.property(frames, fc.uint8Array(), fc.uint8Array(), (frame, before, after) => {
        const buffer = joined(joined(before, encodeFrame(frame)), after);
        expect(decodeFrame(buffer.subarray(before.length))).toEqual(frame);
      }),
    );
  });

  test("of several megabytes decodes completely", () => {
    const body = new Uint8Array(5_000_000).map((_, index) => index % 251);
    const head = new Uint8Array(300_000).fill(120);

    expect(decodeFrame(encodeFrame({ number: 7, head, body }))).toEqual({ number: 7, head, body });
  });
});
