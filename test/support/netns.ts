/**
 * Network namespaces of the tests: all named `vt-<area>-<process>-…`, so that a
 * run that was killed leaves nothing that the next one does not sweep, and runs
 * side by side leave each other alone.
 */
import { existsSync, readdirSync } from "node:fs";

const FOLDER = "/run/netns";
const PREFIX = "vt-";

/** Tests that make namespaces skip themselves without these means. */
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

  /** Removes all that this run, or a dead run of this area, has left. */
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

/** Runs a command inside the namespace; its standard output, or an error with what it said. */
export function runIn(netns: TestNetns, command: readonly string[], input = ""): string {
  return run(["nsenter", `--net=${netns.path}`, "--", ...command], input);
}

function run(command: readonly string[], input = ""): string {
  const result = Bun.spawnSync([...command], { stdin: Buffer.from(input), stdout: "pipe", stderr: "pipe" });
  if (result.exitCode === 0) return result.stdout.toString();
  throw new Error(`${command.join(" ")}: exit code ${result.exitCode}: ${result.stderr.toString().trim()}`);
}
