import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { decodeFrame } from "./frame.ts";
import { callHead, decodeCall, encodeCall, putHead, roomForHead } from "./handed-call.ts";

const environments = (unit: "binary" | "binary-ascii") =>
  fc.dictionary(fc.string({ unit, minLength: 1 }), fc.string({ unit })).map((given) => ({ ...given }));

/** As the plugin's process makes it: the config is there already, and the head is put before it. */
function putCall(program: string, environment: Record<string, string>, stdin: Uint8Array): Uint8Array | undefined {
  const head = callHead(program, environment);
  const room = roomForHead(head);
  const bytes = new Uint8Array(room + stdin.length);
  bytes.set(stdin, room);
  return putHead(bytes, head, stdin.length) ? bytes : undefined;
}

describe("a handed call", () => {
  test("arrives as it was given, whatever is in the environment and the config", () => {
    fc.assert(
      fc.property(fc.string(), environments("binary"), fc.uint8Array(), (program, environment, stdin) => {
        const frame = decodeFrame(encodeCall({ program, environment, stdin }));
        expect(frame && decodeCall(frame)).toEqual({ program, environment, stdin });
      }),
      { examples: [["ipam", JSON.parse('{"__proto__":"a variable"}'), new Uint8Array(0)]] },
    );
  });

  test("is the same, byte for byte, where its head is put before a config that is there", () => {
    fc.assert(
      fc.property(environments("binary-ascii"), fc.uint8Array(), (environment, stdin) => {
        expect(putCall("plugin", environment, stdin)).toEqual(encodeCall({ program: "plugin", environment, stdin }));
      }),
    );
  });

  test("cannot be put together in place with a letter beyond ASCII", () => {
    expect(putCall("plugin", { CNI_ARGS: "K8S_POD_NAME=büro" }, new Uint8Array(3))).toBeUndefined();
  });
});
