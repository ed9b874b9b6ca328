import { describe, expect, test } from "bun:test";
import { linesOf } from "./lines.ts";

async function linesIn(pieces: readonly Uint8Array[]): Promise<readonly string[]> {
  const lines: string[] = [];
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
  for await (const line of linesOf(body)) lines.push(line);
  return lines;
}

describe("linesOf()", () => {
  const bytes = new TextEncoder().encode('{"a":"é"}\n\n{"b":2}\n{"c":3}');

  test.each([1, 2, 7, 100])("is the same however the body is cut: pieces of %i bytes", async (size) => {
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size),
    );

    expect(await linesIn(pieces)).toEqual(['{"a":"é"}', '{"b":2}', '{"c":3}']);
  });

  test("has none in an empty body", async () => {
    expect(await linesIn([])).toEqual([]);
  });
});
