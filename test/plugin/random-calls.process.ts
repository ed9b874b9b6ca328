/**
 * Inside a private host: makes random calls, a few at once, and reports each
 * result that is not valid for a plugin.
 *   bun random-calls.process.ts SEED COUNT RIGHTNESS(JSON) PROGRAMS
 * An ADD that succeeds is followed by its DEL, so that nothing may be left.
 */
import { join } from "node:path";
import { seededRandom } from "../../bench/support/seeded-random.ts";
import { ERROR_TABLE } from "../../src/errors.ts";
import { type RandomCall, type Rightness, randomCall } from "../support/random-calls.ts";

const AT_ONCE = 4;
const LIMIT_MILLISECONDS = 20_000;

const [seed = "1", count = "0", rightness = "{}", programs = ""] = process.argv.slice(2);
const right = JSON.parse(rightness) as Rightness;
const outcomes = { calls: 0, results: 0, errors: 0, codes: {} as Record<string, number> };

let next = 0;
await Promise.all(Array.from({ length: AT_ONCE }, work));
console.log(JSON.stringify({ outcomes }));

async function work(): Promise<void> {
  while (next < Number(count)) {
    const index = next++;
    const call = randomCall(seededRandom(Number(seed) + index), right);
    const trouble = await troubleOf(call);
    if (trouble !== undefined) console.log(JSON.stringify({ index, trouble, ...shown(call) }));
  }
}

async function troubleOf(call: RandomCall): Promise<string | undefined> {
  outcomes.calls += 1;
  const run = await execute(call);
  const trouble = misbehaviour(call, run);
  if (trouble !== undefined || run.code !== 0 || call.environment["CNI_COMMAND"] !== "ADD" || call.args[0] === "-v") {
    return trouble;
  }
  const undone = await execute({ ...call, environment: { ...call.environment, CNI_COMMAND: "DEL" } });
  return undone.code === 0 ? undefined : `the DEL of an ADD that succeeded failed: ${undone.stdout}`;
}

interface Run {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function execute({ name, args, environment, stdin }: RandomCall): Promise<Run> {
  const child = Bun.spawn([join(programs, name), ...args], {
    env: { ...environment },
    stdin,
    stdout: "pipe",
    stderr: "pipe",
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MILLISECONDS);
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  await child.exited;
  clearTimeout(timer);
  return { code: child.exitCode, signal: child.signalCode, stdout, stderr };
}

/** One result, no output, or one error of an expected kind; never a stack trace. */
function misbehaviour({ environment, args }: RandomCall, { code, signal, stdout, stderr }: Run): string | undefined {
  if (signal !== null) return `ended by ${signal}${signal === "SIGKILL" ? ": it hung" : ""}`;
  if (/^\s+at .*:\d+/m.test(stderr)) return `a stack on stderr: ${stderr}`;
  if (args[0] === "-v") return code === 0 ? undefined : `exit code ${code}`;
  if (code === 1) return errorTrouble(stdout);
  if (code !== 0) return `exit code ${code}: ${stderr}`;
  outcomes.results += 1;
  const speaks = ["ADD", "VERSION"].includes(environment["CNI_COMMAND"] ?? "");
  // Without a command a plugin prints its description.
  if ((environment["CNI_COMMAND"] ?? "") === "") return undefined;
  if (!speaks) return stdout === "" ? undefined : `said something: ${stdout}`;
  const result = parsed(stdout);
  return result === undefined ? `no JSON: ${stdout}` : undefined;
}

function errorTrouble(stdout: string): string | undefined {
  outcomes.errors += 1;
  const error = parsed(stdout);
  if (error === undefined || typeof error["code"] !== "number" || typeof error["msg"] !== "string") {
    return `no CNI error: ${stdout}`;
  }
  outcomes.codes[error["code"]] = (outcomes.codes[error["code"]] ?? 0) + 1;
  return error["code"] === ERROR_TABLE.internal.code ? `an unexpected error: ${stdout}` : undefined;
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function shown({ name, args, environment, stdin }: RandomCall): object {
  return { name, args, environment, stdin: new TextDecoder().decode(stdin).slice(0, 2000) };
}
