/** The admin tool, composed. */
import { readdir, readFile } from "node:fs/promises";
import type { Context } from "../admin/command.ts";
import { runAdmin } from "../admin/run.ts";
import { openDatastore } from "../datastore/open.ts";
import { wasClosedAtStart } from "./descriptors.ts";
import { forgetProxies } from "./proxies.ts";

export async function run(args: readonly string[]): Promise<number> {
  // The executable starts reluctant to compile, for the plugins' sake; a check of a whole cluster is worth compiling.
  Bun.unsafe.setJITPolicy(1);
  process.stdout.on("error", endWithoutReader);
  if (wasClosedAtStart(1)) endWithoutReader(new Error("it is closed"));
  const context: Context = {
    env: forgetProxies(),
    isTerminal: process.stdout.isTTY === true,
    showsProgress: process.stderr.isTTY === true,
    stdout: (text) => void process.stdout.write(text),
    stderr: (text) => void process.stderr.write(text),
    readFile: (path) => readFile(path, "utf8"),
    readStdin: () => Bun.stdin.text(),
    listFolder,
    openDatastore,
    now: () => new Date(),
    uuid: () => crypto.randomUUID(),
    random: Math.random,
    wait: (milliseconds) => Bun.sleep(milliseconds),
  };
  return runAdmin(args, context);
}

async function listFolder(path: string): Promise<readonly string[] | undefined> {
  try {
    return (await readdir(path)).sort();
  } catch (failure) {
    if (failure instanceof Error && "code" in failure && failure.code === "ENOTDIR") return undefined;
    throw failure;
  }
}

/** A reader that has seen enough (`| head`) is no failure; an answer that cannot be written is. */
function endWithoutReader(failure: Error): never {
  if ("code" in failure && failure.code === "EPIPE") process.exit(0);
  process.stderr.write(`Cannot write the answer to stdout: ${failure.message}\n`);
  process.exit(1);
}
