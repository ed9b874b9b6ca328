/**
 * `make bare`: runs `make demo`, `make deb` and `make test` of a fresh clone on a bare Debian with a random host name
 * that was booted a few minutes ago, where dpkg installs and purges the package. Passes if they pass and nothing was skipped that `make test` runs elsewhere.
 * However it ends, the machine and its directory are removed.
 */
import { join } from "node:path";
import { temporaryDirectory } from "../test/support/temporary-directory.ts";
import { bareMachineProblem, startBareMachine } from "./bare/machine.ts";
import { needlessReasons, type Outcome, outcomeOf } from "./bare/outcome.ts";
import { installPrograms } from "./programs/install.ts";

const EXIT_INTERRUPTED = 130;
const repository = join(import.meta.dir, "..");

process.exit(await bare());

async function bare(): Promise<number> {
  if (process.getuid?.() !== 0 || Bun.which("apt-get") === null) {
    console.error("make bare needs root on Debian: it installs another Debian in a temporary directory");
    return 1;
  }
  await installPrograms();
  const problem = await bareMachineProblem(repository);
  if (problem !== undefined) {
    console.error(`make bare cannot make a bare machine: it ${problem}`);
    return 1;
  }

  // Mounts in the machine are not visible here: removing the directory removes only its files.
  const folder = temporaryDirectory("bare");
  const machine = await startBareMachine({ folder: folder.path, repository, work: "everything" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, async () => {
      machine.kill("SIGKILL");
      await machine.exited;
      process.exit(EXIT_INTERRUPTED);
    });
  }
  const printed = await copyToStdout(machine.stdout);
  const code = await machine.exited;
  folder.remove();
  return verdict(outcomeOf(printed), code);
}

/** Prints the output as it arrives, and returns all of it. */
async function copyToStdout(output: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let printed = "";
  for await (const chunk of output) {
    process.stdout.write(chunk);
    printed += decoder.decode(chunk, { stream: true });
  }
  return printed;
}

function verdict(outcome: Outcome, code: number): number {
  for (const [reason, count] of outcome.reasons) console.log(`bare: ${count} skipped: ${reason}`);
  const needless = needlessReasons(outcome);
  for (const reason of needless) console.log(`bare: not passed: skipped although all packages are there: ${reason}`);
  if (code !== 0) console.log(`bare: not passed: exit code ${code}`);
  if (outcome.counts === undefined) console.log("bare: not passed: make test did not finish");
  else console.log(outcome.counts);
  return code === 0 && needless.length === 0 && outcome.counts !== undefined ? 0 : 1;
}
