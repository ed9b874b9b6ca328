/**
 * The product under two other names: neither the executable nor its output
 * contains a name of the other or of the default. What a compiled program without
 * our code contains belongs to the runtime and the schema library (whose standard
 * interface has a member `vendor`), and is not counted; nor is the same library
 * in the page of the console.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { compileExecutable } from "../../scripts/compile.ts";
import { type Identity, identity } from "../../src/identity.ts";
import { proofSize } from "../support/proof-size.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { renamedIdentity } from "./other-name.ts";

const FIRST = renamedIdentity(identity, "quillon");
const SECOND = renamedIdentity(identity, "zubrivna");
/** Both are built in `make soak` only: the first one shows everything but names that come from neither. */
const BUILT = proofSize({ everyDay: [FIRST], soak: [FIRST, SECOND] });

const directory = temporaryDirectory("identity");
const folder = directory.path;
let workOfOthers = Buffer.alloc(0);

beforeAll(async () => {
  const entry = join(folder, "others.ts");
  const library = Bun.resolveSync("valibot", import.meta.dir);
  await Bun.write(entry, `import { string } from ${JSON.stringify(library)};\nconsole.log(string());\n`);
  await compileExecutable({ entry, executable: join(folder, "others") });
  workOfOthers = readFileSync(join(folder, "others"));
  for (const names of BUILT) await build(names);
}, 120_000);

afterAll(() => directory.remove());

async function build(names: Identity): Promise<void> {
  const file = join(folder, `${names.product}.json`);
  await Bun.write(file, JSON.stringify(names));
  const command = ["make", "--no-print-directory", "build", `IDENTITY=${file}`, `OUT=${join(folder, names.product)}`];
  const { exitCode, stderr } = Bun.spawnSync(command, { stdin: "ignore" });
  expect({ exitCode, stderr: stderr.toString() }).toEqual({ exitCode: 0, stderr: "" });
}

const program = (names: Identity, name: string) => join(folder, names.product, "bin", name);

/** In one-byte and two-byte encoding: the compiled form contains both. */
function occurrences(bytes: Buffer, text: string): number {
  return (["latin1", "utf16le"] as const).reduce((sum, encoding) => {
    const wanted = Buffer.from(text, encoding);
    let found = 0;
    for (let at = bytes.indexOf(wanted); at !== -1; at = bytes.indexOf(wanted, at + 1)) {
      const rest = bytes.subarray(at + wanted.length, at + wanted.length + 40).toString(encoding);
      if (!LIBRARY_IN_THE_PAGE.test(rest)) found += 1;
    }
    return sum + found;
  }, 0);
}

/** What follows the name there: the page is text inside the executable, so its quotes are escaped. */
const LIBRARY_IN_THE_PAGE = /^\w*:\\+"valibot\\/;

const namesOf = (names: Identity): readonly string[] => [...new Set(Object.values(names))];

/** Names that occur in the executable more often than in an executable without our code. */
function foreignNames(executable: Buffer, strangers: readonly Identity[]): readonly string[] {
  return strangers.flatMap(namesOf).filter((name) => occurrences(executable, name) > occurrences(workOfOthers, name));
}

interface Call {
  readonly name: string;
  readonly args?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

/** All output that needs no container: results, errors, help, completion, effective defaults. */
function callsOf(names: Identity): readonly Call[] {
  const config = join(folder, `${names.product}.conf`);
  const minimal = { name: "net", cniVersion: "1.0.0", type: names.product, ipam: { type: names.ipamType } };
  const cni = (command: string, stdin: unknown, more: Readonly<Record<string, string>> = {}): Call[] =>
    [names.product, names.ipamType].map((name) => ({
      name,
      environment: { CNI_COMMAND: command, ...more },
      stdin: JSON.stringify(stdin),
    }));
  const container = { CNI_CONTAINERID: "c", CNI_NETNS: "/nowhere", CNI_IFNAME: "eth0", CNI_PATH: "/nowhere" };
  const admin = (...args: string[]): Call => ({ name: names.adminTool, args });
  return [
    { name: names.product, args: ["-v"] },
    { name: names.product },
    ...cni("VERSION", { cniVersion: "1.0.0" }),
    ...cni("ADD", minimal),
    ...cni("ADD", { ...minimal, log_level: "verbose", ipam: { type: names.ipamType, assign_ipv4: true } }, container),
    ...cni("CHECK", minimal, container),
    ...cni("STATUS", { ...minimal, cniVersion: "1.1.0" }, container),
    ...cni("NOTHING", minimal),
    ...[[], ["help"], ["--help"], ["version"], ["nothing"], ["config"], ["config", "--help"]].map((args) =>
      admin(...args),
    ),
    ...["bash", "zsh", "fish"].map((shell) => admin("completion", shell)),
    admin("config", "check", config),
    admin("config", "check", "--effective", config),
    admin("config", "check", "--effective", "-o", "json", config),
  ];
}

function outputOf(names: Identity, call: Call): string {
  const { stdout, stderr } = Bun.spawnSync([program(names, call.name), ...(call.args ?? [])], {
    env: { ...call.environment },
    stdin: Buffer.from(call.stdin ?? ""),
    timeout: 20_000,
  });
  return stdout.toString() + stderr.toString();
}

describe("a build under another identity", () => {
  const both: readonly (readonly [string, Identity, readonly Identity[]])[] = [
    ["the first", FIRST, [SECOND, identity]],
    ["the second", SECOND, [FIRST, identity]],
  ];
  const cases = both.filter(([, names]) => BUILT.includes(names));

  test("uses identities that share no name with each other or with the default", () => {
    for (const [, names, strangers] of both) {
      const foreign = new Set(strangers.flatMap(namesOf));
      expect(namesOf(names).filter((name) => foreign.has(name))).toEqual([]);
    }
  });

  test.each(cases)("contains its own names in the executable, and none of the others: %s", (_, names, strangers) => {
    const executable = readFileSync(program(names, names.product));

    expect(occurrences(executable, names.product)).toBeGreaterThan(0);
    expect(foreignNames(executable, strangers)).toEqual([]);
  });

  test.each(cases)("uses its own names for the programs: %s", (_, names, strangers) => {
    const programs = readdirSync(join(folder, names.product, "bin"));

    expect(programs).toContain(names.product);
    expect(strangers.flatMap(namesOf).filter((name) => programs.includes(name))).toEqual([]);
  });

  test.each(cases)("prints no name of the others: %s", async (_, names, strangers) => {
    const config = { name: "net", cniVersion: "1.0.0", type: names.product, ipam: { type: names.ipamType } };
    await Bun.write(join(folder, `${names.product}.conf`), JSON.stringify({ ...config, nonsense: 1 }));
    const calls = callsOf(names).filter((call) => existsSync(program(names, call.name)));
    const printed = calls.map((call) => outputOf(names, call)).join("\n");

    expect(printed).toContain(names.product);
    const words = strangers.map((stranger) => stranger.product.toLowerCase());
    expect(printed.split("\n").filter((line) => words.some((word) => line.toLowerCase().includes(word)))).toEqual([]);
  });
});
