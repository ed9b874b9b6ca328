import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { decodeFrame } from "./frame.ts";
import { callHead, decodeCall, encodeCall, putHead, roomForHead } from "./handed-call.ts";

const environments = (unit: "binary" | "binary-ascii") =>
  fc.dictionary(fc.string({ unit, minLength: 1 }), fc.string({ unit })).map((given) => ({ ...given }));

/** As the plugin's process encodes it: the config is in the buffer already, and the head is written before it. */
function putCall(program: string, environment: Record<string, string>, stdin: Uint8Array): Uint8Array | undefined {
  const head = callHead(program, environment);
  const room = roomForHead(head);
  const bytes = new Uint8Array(room + stdin.length);
  bytes.set(stdin, room);
  return putHead(bytes, head, stdin.length) ? bytes : undefined;
}

describe("a handed call", () => {
  test("decodes to what was encoded, whatever is in the environment and the config", () => {
    fc.assert(
      fc.property(fc.string(), environments("binary"), fc.uint8Array(), (program, environment, stdin) => {
        const frame = decodeFrame(encodeCall({ program, environment, stdin }));
        expect(frame && decodeCall(frame)).toEqual({ program, environment, stdin });
      }),
      { examples: [["ipam", JSON.parse('{"__proto__":"a variable"}'), new Uint8Array(0)]] },
    );
  });

  test("has the same bytes if its head is written before a config in place", () => {
    fc.assert(
      fc.property(environments("binary-ascii"), fc.uint8Array(), (environment, stdin) => {
        expect(putCall("plugin", environment, stdin)).toEqual(encodeCall({ program: "plugin", environment, stdin }));
      }),
    );
  });

  test("cannot be completed in place if its head is not plain ASCII", () => {
    expect(putCall("plugin", { CNI_ARGS: "K8S_POD_NAME=büro" }, new Uint8Array(3))).toBeUndefined();
  });
});
