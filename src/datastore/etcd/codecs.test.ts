import { describe, expect, test } from "bun:test";
import { delimited, message, varint } from "../../grpc/protobuf.ts";
import * as json from "./gateway-json.ts";
import * as grpc from "./grpc-messages.ts";

const LARGEST = 2n ** 63n - 1n;
const base64 = (text: string) => Buffer.from(text).toString("base64");

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
