import { describe, expect, test } from "bun:test";
import { Http2Failure } from "./failure.ts";
import { encodeFields, FieldReader } from "./header-fields.ts";

const hex = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(" ", ""), "hex"));
const fieldsIn = (reader: FieldReader, block: string) => Object.fromEntries(reader.read(hex(block)));

describe("FieldReader", () => {
  // The examples of RFC 7541, appendix C: three answers on one connection.
  test.each([
    [
      "plain",
      "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
      "4803 3330 37c1 c0bf",
    ],
    [
      "in Huffman's code",
      "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
      "4883 640e ffc1 c0bf",
    ],
  ])("reads the examples of the standard, %s", (_, first, second) => {
    const reader = new FieldReader();
    const shared = {
      "cache-control": "private",
      date: "Mon, 21 Oct 2013 20:13:21 GMT",
      location: "https://www.example.com",
    };

    expect(fieldsIn(reader, first)).toEqual({ ":status": "302", ...shared });
    expect(fieldsIn(reader, second)).toEqual({ ":status": "307", ...shared });
  });

  test("reads what encodeFields() writes, whatever its length", () => {
    const fields: [string, string][] = [
      [":path", "/etcdserverpb.KV/Txn"],
      ["token", "x".repeat(127)],
      ["long", "y".repeat(20_000)],
      ["empty", ""],
      ["letters", "é ü"],
    ];

    expect([...new FieldReader().read(encodeFields(fields))]).toEqual(fields);
  });

  test("forgets the oldest fields where the table is full", () => {
    const reader = new FieldReader();
    // Names of one letter with values of 127: 160 bytes each in the table.
    for (const letter of ["61", "62"]) fieldsIn(reader, `40 01 ${letter} 7f00 ${"78".repeat(127)}`);

    expect(fieldsIn(reader, "be")).toEqual({ b: "x".repeat(127) });
    expect(fieldsIn(reader, "bf")).toEqual({ a: "x".repeat(127) });
    fieldsIn(reader, "3f 81 01");
    expect(fieldsIn(reader, "be")).toEqual({ b: "x".repeat(127) });
    expect(() => fieldsIn(reader, "bf")).toThrow(Http2Failure);
  });

  test("counts the bytes of a field, whatever letters they make", () => {
    const reader = new FieldReader();
    // 60 bytes each in the table, where there is place for 120.
    fieldsIn(reader, "3f 59");
    for (const letter of ["61", "62"]) fieldsIn(reader, `40 01 ${letter} 1b ${"ff".repeat(27)}`);

    expect(fieldsIn(reader, "bf")).toEqual({ a: "\u00ff".repeat(27) });
  });

  test.each([
    ["a number that goes on and on", "ff ff ff ff ff ff ff ff"],
    ["a text longer than the block", "40 01 61 05 62"],
    ["a field of no table", "c0"],
    ["number zero", "80"],
    ["a table larger than allowed", "3f e2 1f"],
    ["a code that fills up with zeros", "40 01 61 81 00"],
    ["the end of a text within it", "40 01 61 84 ff ff ff ff"],
  ])("refuses %s", (_, block) => {
    expect(() => new FieldReader().read(hex(block))).toThrow(Http2Failure);
  });
});
