import { afterAll, describe, expect, test } from "bun:test";
import { lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { replaceFile } from "./replace-file.ts";

const { path: directory, remove } = temporaryDirectory("replace-file");
afterAll(() => remove());

describe("replaceFile()", () => {
  test("writes a file that everybody may read, with its folder, and says whether it changed", () => {
    const file = join(directory, "state", "mtu");
    expect([replaceFile(file, "1450\n"), replaceFile(file, "1450\n"), replaceFile(file, "900\n")]).toEqual([
      true,
      false,
      true,
    ]);
    expect(readFileSync(file, "utf8")).toBe("900\n");
    expect(statSync(file).mode & 0o777).toBe(0o644);
    expect(readdirSync(join(directory, "state"))).toEqual(["mtu"]);
  });

  test("follows no link that somebody has put in the place of a private file", () => {
    const [file, elsewhere] = [join(directory, "plan"), join(directory, "elsewhere")];
    writeFileSync(elsewhere, "theirs");
    symlinkSync(elsewhere, `${file}.unfinished`);
    replaceFile(file, "a secret", "owner");

    expect([readFileSync(file, "utf8"), readFileSync(elsewhere, "utf8")]).toEqual(["a secret", "theirs"]);
    expect(lstatSync(file).mode & 0o170777).toBe(0o100600);
  });

  test("leaves nothing behind if the path cannot be written", () => {
    mkdirSync(join(directory, "taken", "mtu"), { recursive: true });
    expect(thrownBy(() => replaceFile(join(directory, "taken", "mtu"), "1"))).toMatchObject({ kind: "io-failure" });
    expect(readdirSync(join(directory, "taken"))).toEqual(["mtu"]);
  });
});
