/** Replaces small files that other processes read at any time. For long-running work: imports node:fs. */
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { effect } from "../effect.ts";
import { PluginError } from "../errors.ts";
import { quoted } from "../quote.ts";
import { readText } from "./files.ts";

/** No reader sees half of it, or none. Returns `false` if it has this text already. */
export function replaceFile(path: string, text: string, readers: "everybody" | "owner" = "everybody"): boolean {
  if (readText(path) === text) return false;
  const isPrivate = readers === "owner";
  const unfinished = `${path}.unfinished`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: isPrivate ? 0o700 : 0o755 });
    effect(`replace "${path}"`, () => {
      // What somebody else has put in its place would stay theirs, or lead elsewhere.
      if (isPrivate) rmSync(unfinished, { force: true });
      writeFileSync(unfinished, text, { mode: 0o600, flag: isPrivate ? "wx" : "w" });
      chmodSync(unfinished, isPrivate ? 0o600 : 0o644);
      renameSync(unfinished, path);
    });
    return true;
  } catch (cause) {
    rmSync(unfinished, { force: true });
    const reason = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    throw new PluginError("io-failure", `Cannot write ${quoted(path)}: ${reason}`, { cause });
  }
}
