import { describe, expect, test } from "bun:test";
import { BAD_INPUTS } from "../../test/support/bad-inputs.ts";
import { checkNetworkFile } from "./network-file.ts";

describe("checkNetworkFile()", () => {
  test("is tried with at least thirty bad inputs", () => {
    expect(BAD_INPUTS.length).toBeGreaterThanOrEqual(30);
  });

  test.each([...BAD_INPUTS])("answers $wrong", async ({ text, path, says }) => {
    const { findings } = await checkNetworkFile(text, { looksForFiles: true });
    const errors = findings.filter(({ severity }) => severity === "error");

    expect(errors.map((finding) => finding.path)).toEqual([path]);
    for (const words of says) expect(errors[0]?.message).toContain(words);
    expect(JSON.stringify(findings)).not.toContain("secret");
  });
});
