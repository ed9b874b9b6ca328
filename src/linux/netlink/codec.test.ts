import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { PluginError } from "../../errors.ts";
import { readAcknowledgement } from "./acknowledgement.ts";
import { AttributeCursor, MessageCursor } from "./message-reader.ts";
import { MessageWriter } from "./message-writer.ts";

describe("MessageWriter", () => {
  test("reads back what was written, for any order and length of attributes", () => {
    const attribute = fc.record({
      type: fc.integer({ min: 1, max: 0x3fff }),
      value: fc.uint8Array({ maxLength: 300 }),
    });
    fc.assert(
      fc.property(fc.array(fc.array(attribute, { maxLength: 20 }), { maxLength: 5 }), (messages) => {
        const writer = new MessageWriter(16);
        messages.forEach((attributes, index) => {
          writer.beginMessage(0x0a06, 5, index + 7);
          writer.raw(Uint8Array.of(1, 2, 3, 4));
          for (const { type, value } of attributes) writer.bytes(type, value);
          writer.endMessage();
        });
        const cursor = new MessageCursor(writer.written());
        const seen = [];
        while (cursor.next()) {
          expect([cursor.type, cursor.flags, cursor.sequence]).toEqual([0x0a06, 5, seen.length + 7]);
          seen.push(readAll(cursor.attributes(4)));
        }
        expect(seen).toEqual(messages);
      }),
    );
  });

  test("writes each width in its byte order", () => {
    const writer = new MessageWriter();
    writer.u8(1, 0x12);
    writer.u16(2, 0x1234);
    writer.u16Big(3, 0x1234);
    writer.u32(4, 0x12345678);
    writer.u32Big(5, 0x12345678);
    writer.u64(6, 0x0102030405060708n);
    writer.u64Big(7, 0x0102030405060708n);
    writer.flag(8);
    expect(writer.written().toHex()).toBe(
      [
        "0500010012000000",
        "0600020034120000",
        "0600030012340000",
        "0800040078563412",
        "0800050012345678",
        "0c0006000807060504030201",
        "0c0007000102030405060708",
        "04000800",
      ].join(""),
    );
  });

  test("closes a nested attribute with the length of its content", () => {
    const writer = new MessageWriter();
    const outer = writer.open(1);
    const inner = writer.openUnmarked(2);
    writer.text(3, "abcd");
    writer.close(inner);
    writer.close(outer);
    expect(writer.written().toHex()).toBe("14000180" + "10000200" + "09000300" + "6162636400000000");
  });

  test("keeps text outside ASCII and beyond the first buffer", () => {
    const text = "netz–überfluß ".repeat(400);
    const writer = new MessageWriter(16);
    writer.text(1, text);
    const bytes = writer.written();
    const cursor = new AttributeCursor(new DataView(bytes.buffer, 0, bytes.length), 0, bytes.length);
    expect(cursor.next()).toBe(true);
    expect(cursor.text()).toBe(text);
  });

  test("refuses an attribute that is too long for netlink", () => {
    const writer = new MessageWriter();
    const outer = writer.open(1);
    for (let index = 0; index < 9; index++) writer.bytes(2, new Uint8Array(8192));
    expect(() => writer.close(outer)).toThrow(RangeError);
  });
});

describe("MessageCursor", () => {
  test("reads arbitrary bytes to the end or refuses them, and never reads past the end", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          const cursor = new MessageCursor(bytes);
          while (cursor.next()) readAll(cursor.attributes(0));
        } catch (error) {
          expect(error).toBeInstanceOf(PluginError);
        }
      }),
    );
  });
});

describe("readAcknowledgement()", () => {
  const words = "1b000100".concat(Buffer.from("Device does not exist\0").toString("hex"), "0000", "0800020024000000");

  test.each([
    [
      "an acceptance",
      "2400000002000001070000000000000000000000200000001000050007000000 00000000",
      { errno: 0, text: "" },
    ],
    ["an error without text", "2400000002000001070000000000000000000000", { errno: 0, text: "" }],
  ])("reads %s", (_name, hex, expected) => {
    expect(acknowledgementOf(hex.replaceAll(" ", ""))).toEqual(expected);
  });

  test("reads the kernel's text and the offset after a capped request", () => {
    const body = `edffffff${"20000000100005000700000000000000"}${words}`;
    expect(acknowledgementOf(framed(0x300, body))).toEqual({ errno: 19, text: "Device does not exist", offset: 36 });
  });

  test("reads them after a complete echoed request too", () => {
    const body = `edffffff${"20000000100005000700000000000000"}${"00".repeat(16)}${words}`;
    expect(acknowledgementOf(framed(0x200, body))).toEqual({ errno: 19, text: "Device does not exist", offset: 36 });
  });
});

function framed(flags: number, body: string): string {
  const writer = new MessageWriter();
  writer.beginMessage(2, flags, 7);
  writer.raw(Uint8Array.fromHex(body));
  writer.endMessage();
  return writer.written().toHex();
}

function acknowledgementOf(hex: string) {
  const bytes = Uint8Array.fromHex(hex);
  new DataView(bytes.buffer).setUint32(0, bytes.length, true);
  const cursor = new MessageCursor(bytes);
  expect(cursor.next()).toBe(true);
  return readAcknowledgement(cursor, "request");
}

function readAll(attributes: AttributeCursor) {
  const all = [];
  while (attributes.next()) all.push({ type: attributes.type, value: attributes.copy() });
  return all;
}
