import { describe, expect, test } from "bun:test";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { testNeeding } from "../../test/support/needs.ts";
import { PluginError } from "../errors.ts";
import { readOwnFile, trustedUsers } from "./read-own-file.ts";

/** Below a directory that belongs to root, whatever the temporary one is. */
const PARENT = "/root";
const SOMEBODY = 65_534;
const asRoot = testNeeding(process.getuid?.() === 0 ? undefined : "needs root");

function outcomeOf(prepare: (folder: string, file: string) => string | undefined, users = [0]): string {
  const folder = mkdtempSync(join(PARENT, "own-file-"));
  const file = join(folder, "plan.json");
  try {
    writeFileSync(file, "the plan", { mode: 0o600 });
    return readOwnFile(prepare(folder, file) ?? file, users);
  } catch (failure) {
    return failure instanceof PluginError
      ? failure.message.replace(folder, "FOLDER").replace(folder, "FOLDER")
      : "failed";
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe("readOwnFile()", () => {
  asRoot("reads a file that only its user and root may change", () => {
    expect(outcomeOf(() => undefined)).toBe("the plan");
  });

  asRoot("reads it in a directory that everybody may write to only if it is sticky", () => {
    const open = (mode: number) => outcomeOf((folder) => void chmodSync(folder, mode));

    expect(open(0o1777)).toBe("the plan");
    expect(open(0o777)).toBe(
      'Cannot trust the file "FOLDER/plan.json": directory "FOLDER": other users may write to it',
    );
  });

  asRoot("refuses a file that others may write, or that belongs to another user", () => {
    expect(outcomeOf((_, file) => void chmodSync(file, 0o620))).toContain("other users may write to it");
    expect(outcomeOf((_, file) => void chownSync(file, SOMEBODY, 0))).toContain(`it belongs to user ${SOMEBODY}`);
    expect(outcomeOf((folder) => void chownSync(folder, SOMEBODY, 0))).toContain(`it belongs to user ${SOMEBODY}`);
  });

  asRoot("reads what belongs to the user behind sudo", () => {
    const theirs = (_: string, file: string) => void chownSync(file, SOMEBODY, 0);

    expect(outcomeOf(theirs, [...trustedUsers(0, `${SOMEBODY}`)])).toBe("the plan");
    expect(outcomeOf(theirs, [...trustedUsers(0, "nobody")])).toContain("it belongs to user");
  });

  asRoot("judges the place that a link leads to", () => {
    const linked = outcomeOf((folder, file) => {
      const open = join(folder, "open");
      mkdirSync(open);
      chmodSync(open, 0o777);
      writeFileSync(join(open, "theirs"), "another plan");
      rmSync(file);
      symlinkSync(join(open, "theirs"), file);
      return undefined;
    });

    expect(linked).toContain("other users may write to it");
  });

  test.each(["/dev/stdin", "<(cat)"])("reads a pipe of the shell: %s", async (path) => {
    const script = `import { readOwnFile } from "${import.meta.dir}/read-own-file.ts"; process.stdout.write(readOwnFile(process.argv[1], [0]));`;
    const command = `printf 'the plan' | "$0" -e "$1" ${path}`;
    const shell = Bun.spawn(["bash", "-c", command, process.execPath, script], { stderr: "inherit" });

    expect(await new Response(shell.stdout).text()).toBe("the plan");
  });

  test("fails as any reader does if there is no such file", () => {
    expect(() => readOwnFile("/nowhere/plan.json", [0])).toThrow("ENOENT");
  });
});
