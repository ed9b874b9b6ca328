import { describe, expect, test } from "bun:test";
import { runInside } from "../../test/support/admin-context.ts";

describe("helpText()", () => {
  const help = async (words: string, terminalWidth?: number) =>
    (await runInside([...words.split(" "), "--help"], { terminalWidth })).stdout;
  const wordsOf = (text: string) => text.split(/\s+/).filter((word) => word !== "");
  /** What is to be typed stands on one line. */
  const prose = (text: string) => text.replace(/^Usage:.*$|^Examples:[\s\S]*/gm, "");

  test.each([40, 60, 80, 100])("fits a terminal of %d columns, and says the same", async (width) => {
    for (const words of ["get", "delete", "ipam check", "datastore"]) {
      const text = await help(words, width);
      const longest = Math.max(
        ...prose(text)
          .split("\n")
          .map((line) => line.length),
      );

      expect(longest).toBeLessThanOrEqual(width);
      expect(wordsOf(text)).toEqual(wordsOf(await help(words)));
    }
  });

  test("keeps the second column where it is", async () => {
    expect(await help("get", 80)).toContain(
      [
        "  -f, --filename FILE        File or folder of YAML or JSON documents, or - for",
        "                             standard input; may be given several times",
        "  -l, --selector SELECTOR    Only those whose labels it selects: rack == 'a'",
        "",
      ].join("\n"),
    );
  });

  test("puts it below the first where there is no room beside it", async () => {
    expect(await help("get", 40)).toContain(
      [
        "  -n, --namespace NAMESPACE",
        "        Namespace of resources that have",
        "        one; default when absent",
        "",
      ].join("\n"),
    );
  });

  test("is as it is where nobody knows the width", async () => {
    expect(await help("get")).toContain("standard input; may be given several times\n");
    expect(await help("get", 0)).toBe(await help("get"));
  });
});
