import { describe, expect, test } from "bun:test";
import { encodeMessage, MessageReader } from "./message-frames.ts";

describe("MessageReader", () => {
  const newReader = () => new MessageReader(20, () => new RangeError("too large"));
  const messages = ["first", "", "third"].map((text) => Buffer.from(text));
  const bytes = Buffer.concat(messages.map(encodeMessage));

  test.each([1, 2, 5, 7, bytes.length])("finds the messages in pieces of %d bytes", (size) => {
    const reader = newReader();
    const read: string[] = [];
    for (let start = 0; start < bytes.length; start += size) {
      for (const message of reader.read(bytes.subarray(start, start + size)))
        read.push(Buffer.from(message).toString());
    }

    expect(read).toEqual(["first", "", "third"]);
  });

  test("returns a message only once it is complete", () => {
    expect(newReader().read(encodeMessage(Buffer.from("message")).subarray(0, -1))).toEqual([]);
  });

  test("rejects a message that is too large as soon as its length is known", () => {
    expect(newReader().read(encodeMessage(new Uint8Array(15)))).toHaveLength(1);
    expect(() => newReader().read(encodeMessage(new Uint8Array(16)).subarray(0, 5))).toThrow(RangeError);
  });
});
