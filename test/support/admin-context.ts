/** The admin tool run inside the test: files are a table, output is text. */
import type { Context } from "../../src/admin/command.ts";
import { runAdmin } from "../../src/admin/run.ts";

export interface AdminRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface AdminSurroundings {
  readonly files?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly isTerminal?: boolean;
  readonly env?: Context["env"];
}

export async function runInside(args: readonly string[], surroundings: AdminSurroundings = {}): Promise<AdminRun> {
  const { files = {}, stdin = "", isTerminal = false, env = {} } = surroundings;
  const out: string[] = [];
  const err: string[] = [];
  const context: Context = {
    env,
    isTerminal,
    stdout: (text) => void out.push(text),
    stderr: (text) => void err.push(text),
    readFile: async (path) => files[path] ?? missing(),
    readStdin: async () => stdin,
  };
  const code = await runAdmin(args, context);
  return { code, stdout: out.join(""), stderr: err.join("") };
}

function missing(): never {
  throw Object.assign(new Error("missing"), { code: "ENOENT" });
}
