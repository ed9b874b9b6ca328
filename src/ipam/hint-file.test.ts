import { afterAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import { openHintFile } from "./hint-file.ts";
import { NO_HINTS } from "./hints.ts";

const folder = temporaryDirectory("hints");
afterAll(() => folder.remove());

describe("openHintFile()", () => {
  test("remembers for the next process, in a folder it makes itself", async () => {
    const path = join(folder.path, "below", "hints");
    const hints = { blocks: [{ cidr: "10.0.0.0/26", full: true }], warnedUnregistered: true };
    await openHintFile(path).save(hints);

    expect(await openHintFile(path).load()).toEqual(hints);
  });

  test.each([
    ["is missing", undefined],
    ["is torn", '{"blocks":[{"ci'],
    ["holds something else", '{"blocks":[{"cidr":"nonsense","full":false}],"warnedUnregistered":false}'],
  ])("has no hints where the file %s", async (_, text) => {
    const path = join(folder.path, "odd");
    if (text !== undefined) writeFileSync(path, text);

    expect(await openHintFile(path).load()).toEqual(NO_HINTS);
  });

  test("stays silent where nothing can be written", async () => {
    const path = join("/proc/nowhere", "hints");
    await openHintFile(path).save(NO_HINTS);

    expect(await openHintFile(path).load()).toEqual(NO_HINTS);
  });
});
