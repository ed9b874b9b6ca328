import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import * as json from "./gateway-json.ts";
import * as grpc from "./grpc-messages.ts";
import { delimited, Fields, message, varint } from "./protobuf.ts";

const LARGEST = 2n ** 63n - 1n;
const base64 = (text: string) => Buffer.from(text).toString("base64");

describe("Fields", () => {
  test("reads back what was written, numbers of 64 bits and any text", () => {
    const anyNumber = fc.bigInt({ min: -(2n ** 63n), max: LARGEST });
    fc.assert(
      fc.property(anyNumber, fc.array(fc.string({ unit: "binary" })), (number, texts) => {
        const fields = new Fields(
          message(varint(3, number), ...texts.map((text) => delimited(200, delimited(1, text)))),
        );

        expect(fields.numberText(3)).toBe(String(number));
        expect(fields.all(200).map((each) => each.text(1))).toEqual(texts);
      }),
    );
  });

  test("reads absent fields as zero, empty and none", () => {
    const fields = new Fields(message());

    expect([fields.number(1), fields.text(1), fields.flag(1), fields.one(1), fields.all(1)]).toEqual([
      0n,
      "",
      false,
      undefined,
      [],
    ]);
  });

  test("skips fixed-size fields, and rejects truncated input", () => {
    const fixed = Uint8Array.of((1 << 3) | 1, 1, 2, 3, 4, 5, 6, 7, 8, (2 << 3) | 5, 1, 2, 3, 4);
    expect(new Fields(message(fixed, varint(3, 7n))).number(3)).toBe(7n);
    expect(() => new Fields(delimited(1, "whole").subarray(0, 4))).toThrow(RangeError);
    expect(() => new Fields(Uint8Array.of(8, 0x80))).toThrow(RangeError);
  });
});

describe("both codecs", () => {
  const header = { revision: String(LARGEST) };
  const kv = {
    key: base64("/k"),
    value: base64("ü"),
    mod_revision: String(LARGEST - 1n),
    create_revision: "9007199254740993",
  };
  const stored = delimited(
    2,
    message(delimited(1, "/k"), varint(2, 9007199254740993n), varint(3, LARGEST - 1n), delimited(5, "ü")),
  );
  const entry = { key: "/k", value: "ü", revision: "9223372036854775806", createRevision: "9007199254740993" };

  test("decode a response to the same value, with its numbers unchanged", () => {
    const wire = JSON.stringify({
      header,
      succeeded: true,
      responses: [{ response_put: {} }, { response_range: { kvs: [kv] } }, { response_range: {} }],
    });
    const bytes = message(
      delimited(1, varint(3, LARGEST)),
      varint(2, 1n),
      delimited(3, delimited(2, message())),
      delimited(3, delimited(1, stored)),
      delimited(3, delimited(1, message())),
    );
    const answer = { revision: "9223372036854775807", succeeded: true, ranges: [[entry], []] };

    expect(json.decodeTransactionResponse(wire)).toEqual(answer);
    expect(grpc.decodeTransactionResponse(bytes)).toEqual(answer);
  });

  test("decode the events of a watch to the same values", () => {
    const wire = JSON.stringify({
      result: { header, events: [{ kv }, { type: "DELETE", kv: { key: kv.key, mod_revision: "5" } }] },
    });
    const bytes = message(
      delimited(1, varint(3, LARGEST)),
      delimited(11, stored),
      delimited(11, message(varint(1, 1n), delimited(2, message(delimited(1, "/k"), varint(3, 5n))))),
    );
    const answer = {
      revision: "9223372036854775807",
      created: false,
      canceled: false,
      compactRevision: "0",
      cancelReason: "",
      changes: [
        { kind: "put", entry },
        { kind: "delete", key: "/k", revision: "5" },
      ],
    } as const;

    expect(json.decodeWatchLine(wire)).toEqual(answer);
    expect(grpc.decodeWatchResponse(bytes)).toEqual(answer);
  });

  test("decode omitted fields as zeros", () => {
    const nothing = { revision: "0", succeeded: false, ranges: [] };

    expect(json.decodeTransactionResponse("{}")).toEqual(nothing);
    expect(grpc.decodeTransactionResponse(message())).toEqual(nothing);
  });
});

describe("decodeError()", () => {
  test.each([
    ['{"error":"no","message":"no leader","code":14}', { code: 14, message: "no leader" }],
    ['{"error":"no","code":3}', { code: 3, message: "no" }],
    ["plain words\n", { code: 503, message: "plain words" }],
  ])("reads %j", (text, complaint) => {
    expect(json.decodeError(503, text)).toEqual(complaint);
  });
});
