/**
 * Network namespaces of the tests: all named `vt-<area>-<process>-…`, so that the
 * next run removes what a killed one left, and concurrent runs do not disturb each
 * other.
 */
import { existsSync, readdirSync } from "node:fs";

const FOLDER = "/run/netns";
const PREFIX = "vt-";

/** What tests need that create namespaces. */
export const canMakeNetns = process.getuid?.() === 0 && Bun.which("ip") !== null && Bun.which("nsenter") !== null;

export interface TestNetns {
  readonly name: string;
  readonly path: string;
}

/** The area's namespaces; call `sweep` before the first and after the last test. */
export class NetnsArea {
  readonly #prefix: string;
  #count = 0;

  /** `area`: a short word without a dash that no other test file uses. */
  constructor(area: string) {
    this.#prefix = `${PREFIX}${area}-`;
  }

  create(label = ""): TestNetns {
    const name = `${this.#prefix}${process.pid}-${label}${this.#count++}`;
    run(["ip", "netns", "add", name]);
    run(["ip", "-n", name, "link", "set", "lo", "up"]);
    return { name, path: `${FOLDER}/${name}` };
  }

  delete(netns: TestNetns): void {
    if (existsSync(netns.path)) run(["ip", "netns", "delete", netns.name]);
  }

  /** Removes everything that this run, or a dead run of this area, has left. */
  sweep(): void {
    if (!existsSync(FOLDER)) return;
    for (const name of readdirSync(FOLDER)) if (this.#isLeftOver(name)) run(["ip", "netns", "delete", name]);
  }

  #isLeftOver(name: string): boolean {
    if (!name.startsWith(this.#prefix)) return false;
    const owner = name.slice(this.#prefix.length).split("-")[0] ?? "";
    return owner === String(process.pid) || !existsSync(`/proc/${owner}`);
  }
}

/** Runs a command inside the namespace; returns its stdout, or throws with its stderr. */
export function runIn(netns: TestNetns, command: readonly string[], input = ""): string {
  return run(["nsenter", `--net=${netns.path}`, "--", ...command], input);
}

function run(command: readonly string[], input = ""): string {
  const result = Bun.spawnSync([...command], { stdin: Buffer.from(input), stdout: "pipe", stderr: "pipe" });
  if (result.exitCode === 0) return result.stdout.toString();
  throw new Error(`${command.join(" ")}: exit code ${result.exitCode}: ${result.stderr.toString().trim()}`);
}
