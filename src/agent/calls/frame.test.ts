import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { decodeFrame, encodeFrame, type Frame, FrameBuffer, MOST_FRAME_BYTES, putFrameNumbers } from "./frame.ts";

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
        const received = new FrameBuffer();
        let start = 0;
        for (const end of ends) {
          const found = received.add(bytes.subarray(start, end));
          start = end;
          const expected = end === bytes.length ? frame : undefined;
          expect(found).toEqual(expected as Frame);
        }
      }),
    );
  });

  test("ends where its lengths say, whatever follows, and wherever in a buffer it starts", () => {
    fc.assert(
      fc.property(frames, fc.uint8Array(), fc.uint8Array(), (frame, before, after) => {
        const buffer = new Uint8Array(Buffer.concat([before, encodeFrame(frame), after]));
        expect(decodeFrame(buffer.subarray(before.length))).toEqual(frame);
      }),
    );
  });

  test("is refused as soon as its length is known to be too large", () => {
    const numbers = new Uint8Array(12);
    putFrameNumbers(numbers, 0, 0, MOST_FRAME_BYTES);

    expect(new FrameBuffer().add(numbers)).toBe("too large");
  });

  test("is collected in linear time, even byte by byte", () => {
    const bytes = encodeFrame({ number: 1, head: new Uint8Array(0), body: new Uint8Array(300_000) });
    const received = new FrameBuffer();
    let copied = 0;
    const { set } = Uint8Array.prototype;
    const counting = function (this: Uint8Array, from: ArrayLike<number>, at?: number) {
      copied += from.length;
      set.call(this, from, at);
    };
    Uint8Array.prototype.set = counting;
    try {
      for (let at = 0; at < bytes.length; at++) received.add(bytes.subarray(at, at + 1));
    } finally {
      Uint8Array.prototype.set = set;
    }

    expect(copied).toBeLessThan(4 * bytes.length);
  });

  test("of several megabytes decodes completely", () => {
    const body = new Uint8Array(5_000_000).map((_, index) => index % 251);
    const head = new Uint8Array(300_000).fill(120);

    expect(decodeFrame(encodeFrame({ number: 7, head, body }))).toEqual({ number: 7, head, body });
  });
});
