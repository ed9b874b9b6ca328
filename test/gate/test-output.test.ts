import { describe, expect, test } from "bun:test";
import { blocksOf } from "../../scripts/test-output.ts";

const PRINTED = `bun test v1
test/a.test.ts:
(pass) one

test/b.test.ts:
printed by the test: see test/c.test.ts:12
(fail) two — “quoted”

 1 pass
 1 fail
`;

async function blocksOfPieces(size: number): Promise<readonly string[]> {
  const bytes = new TextEncoder().encode(PRINTED);
  async function* pieces() {
    for (let from = 0; from < bytes.length; from += size) yield bytes.slice(from, from + size);
  }
  return Array.fromAsync(blocksOf(pieces()));
}

describe("blocksOf()", () => {
  test.each([1, 7, 1000])("splits the output before each file, in pieces of %d bytes", async (size) => {
    const blocks = await blocksOfPieces(size);

    expect(blocks.join("")).toBe(PRINTED);
    expect(blocks.map((block) => block.split("\n")[0])).toEqual(["bun test v1", "test/a.test.ts:", "test/b.test.ts:"]);
  });
});
