/** Opens a text in the user's editor, in a file that only this user can read. */

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { quoted } from "../../quote.ts";
import type { EditedText } from "../main/context.ts";

/** `editor`: a command of the shell, which may have arguments. */
export async function editText(text: string, editor: string): Promise<EditedText> {
  const folder = await mkdtemp(join(tmpdir(), `${identity.adminTool}-edit-`));
  const remove = () => rm(folder, { recursive: true, force: true });
  const path = join(folder, "resource.yaml");
  try {
    await writeFile(path, text, { mode: 0o600 });
    const { exited } = Bun.spawn(["/bin/sh", "-c", `${editor} "$1"`, editor, path], {
      stdio: ["inherit", "inherit", "inherit"],
    });
    const code = await exited;
    if (code === 0) return { text: await readFile(path, "utf8"), path, remove };
    throw new PluginError(
      "io-failure",
      `Cannot edit the text: the editor ${quoted(editor)} ended with exit code ${code}`,
      {
        details: "set EDITOR to another editor",
      },
    );
  } catch (failure) {
    await remove();
    throw failure;
  }
}
