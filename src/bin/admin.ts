/** The admin tool, composed. */
import { readFile } from "node:fs/promises";
import type { Context } from "../admin/command.ts";
import { runAdmin } from "../admin/run.ts";

export async function run(args: readonly string[]): Promise<number> {
  // A reader that has seen enough (`| head`) is no failure.
  process.stdout.on("error", () => process.exit(0));
  const context: Context = {
    env: process.env,
    isTerminal: process.stdout.isTTY === true,
    stdout: (text) => void process.stdout.write(text),
    stderr: (text) => void process.stderr.write(text),
    readFile: (path) => readFile(path, "utf8"),
    readStdin: () => Bun.stdin.text(),
  };
  return runAdmin(args, context);
}
