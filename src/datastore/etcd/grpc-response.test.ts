import { describe, expect, test } from "bun:test";
import { encodeMessage, MessageReader } from "./grpc-response.ts";

describe("MessageReader", () => {
  const messages = ["first", "", "third"].map((text) => Buffer.from(text));
  const bytes = Buffer.concat(messages.map(encodeMessage));

  test.each([1, 2, 5, 7, bytes.length])("finds the messages in pieces of %d bytes", (size) => {
    const reader = new MessageReader();
    const read: string[] = [];
    for (let start = 0; start < bytes.length; start += size) {
      for (const message of reader.read(bytes.subarray(start, start + size)))
        read.push(Buffer.from(message).toString());
    }

    expect(read).toEqual(["first", "", "third"]);
  });

  test("returns a message only once it is complete", () => {
    expect(new MessageReader().read(encodeMessage(Buffer.from("message")).subarray(0, -1))).toEqual([]);
  });
});
