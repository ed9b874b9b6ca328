import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { programsNotInstalled } from "../../scripts/programs/not-installed.ts";
import { commandsOfScript } from "../../scripts/programs/shell-commands.ts";
import { startedPrograms } from "../../scripts/programs/started-programs.ts";
import { PACKAGES } from "../../scripts/programs/table.ts";
import { TARGETS, type Target } from "../../scripts/programs/targets.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const REPOSITORY = join(import.meta.dir, "../..");

function programsOf(...texts: readonly string[]): readonly string[] {
  const files = new Map(texts.map((text, index) => [`test/file-${index}.test.ts`, text]));
  return [...new Set(startedPrograms(files).map(({ program }) => program))].toSorted();
}

describe("startedPrograms()", () => {
  test.each<[string, string, readonly string[]]>([
    ["of a call of the runtime", `Bun.spawnSync(["tcpdump", "-i", "lo"]);`, ["tcpdump"]],
    ["that is only looked for", `const has = Bun.which("tcpdump") !== null;`, ["tcpdump"]],
    ["of a command in a constant", `const command = ["tcpdump"]; Bun.spawn(command, {});`, ["tcpdump"]],
    ["behind another one", `Bun.spawn(["nsenter", \`--net=\${path}\`, "--", "tcpdump"]);`, ["nsenter", "tcpdump"]],
    ["behind a value option", `Bun.spawn(["setpriv", "--pdeathsig", "KILL", "tcpdump"]);`, ["setpriv", "tcpdump"]],
    ["behind its limit", `Bun.spawn(["timeout", "-k", "1", String(limit), "tcpdump"]);`, ["tcpdump", "timeout"]],
    ["in a namespace", `Bun.spawn(["ip", "netns", "exec", name, "tcpdump"]);`, ["ip", "tcpdump"]],
    ["behind an unknown prefix", `Bun.spawn([...host.enter, "tcpdump"]);`, ["tcpdump"]],
    ["of each way", `Bun.spawn(busy ? ["tcpdump"] : ["tshark"]);`, ["tcpdump", "tshark"]],
    ["by its path", `Bun.spawn(["/usr/sbin/tcpdump"]);`, ["tcpdump"]],
    ["of a script", `Bun.spawn(["sh", "-ec", "cd /tmp; tcpdump -i lo | head"]);`, ["head", "sh", "tcpdump"]],
    [
      "of a script in a constant",
      `const S = "set -e\\ntcpdump lo"; Bun.spawn(["bash", "-c", S]);`,
      ["bash", "tcpdump"],
    ],
    [
      "behind options that are passed on",
      `function as(more: string[]) { return ["unshare", ...more, "--", "sh", "-c", 'exec "$@"', name]; }
       Bun.spawn([...as(["--net", "--mount"]), "tcpdump"]);`,
      ["sh", "tcpdump", "unshare"],
    ],
    ["of a script's arguments", `Bun.spawn(["sh", "-c", 'exec "$@"', "sh", "tcpdump"]);`, ["sh", "tcpdump"]],
    ["but not of arguments", `Bun.spawn([process.execPath, "tcpdump"]); Bun.spawn(["ip", "link"]);`, ["ip"]],
  ])("finds the program %s", (_what, text, programs) => {
    expect(programsOf(text)).toEqual(programs);
  });

  test.each<[string, string]>([
    [
      "function",
      `export function run(place: string, command: string[]) { Bun.spawn(["nsenter", "--net=" + place, "--", ...command]); }`,
    ],
    ["constant", `export const run = (place: string, command: string[]) => Bun.spawnSync([...command]);`],
    [
      "function of a function",
      `function go(c: string[]) { Bun.spawn(c); } export function run(p: string, c: string[]) { go(c); }`,
    ],
  ])("follows a %s of another file that starts its arguments", (_kind, helper) => {
    expect(programsOf(helper, `run("here", ["tcpdump", "-i"]);`)).toContain("tcpdump");
  });

  test("follows methods by their name, scripts and lines of text that are passed on", () => {
    const helper = `const host = { must(command: string[]) { Bun.spawn(command); } };
      const shell = (script: string) => host.must(["sh", "-c", script]);
      const line = (text: string) => host.must(text.split(" "));`;

    expect(programsOf(`${helper} other.must(["one"]); shell("two; three"); line("four five");`)).toEqual([
      "four",
      "one",
      "sh",
      "three",
      "two",
    ]);
  });

  test.each<[string, string]>([
    ["a property", "function go(o: Options) { Bun.spawn([...(o.under ?? []), 'x']); }"],
    ["an unpacked parameter", "function go({ under = [] }: Options) { Bun.spawn([...under, 'x']); }"],
    ["an unpacked constant", "function go(o: Options) { const { under = [] } = o; Bun.spawn([...under, 'x']); }"],
    [
      "a property that another function passes on",
      "function run(o: Options) { Bun.spawn([...o.under, 'x']); } function go(o: Options) { run({ name: 'y', ...o }); }",
    ],
  ])("follows %s of what a function is given", (_what, helper) => {
    expect(programsOf(`${helper} go({ name: "z", under: ["tcpdump"] });`)).toEqual(["tcpdump", "x"]);
    expect(programsOf(`${helper} const under = ["tcpdump"]; go({ under });`)).toEqual(["tcpdump", "x"]);
  });

  test("takes a property after a program of the caller for its arguments", () => {
    const helper = "function go(program: string[], o: Options) { Bun.spawn([...program, ...(o.args ?? [])]); }";

    expect(programsOf(`${helper} go(["tcpdump"], { args: ["lo"] });`)).toEqual(["tcpdump"]);
  });

  test("returns file and line", () => {
    expect(startedPrograms(new Map([["test/a.test.ts", `\n\nBun.spawn(["tcpdump"]);`]]))).toEqual([
      { program: "tcpdump", file: "test/a.test.ts", line: 3 },
    ]);
  });
});

describe("commandsOfScript()", () => {
  test.each<[string, readonly string[]]>([
    ["ip link; nft list ruleset && tc qdisc || true", ["ip", "nft", "tc", "true"]],
    ["if ! ip link; then nft x; fi", ["ip", "nft"]],
    ["for each in one two; do ip netns delete $each 2>/dev/null; done", ["ip"]],
    ['until [ -n "$(ip netns pids x)" ]; do sleep 0.02; done', ["[", "ip", "sleep"]],
    ["A=1 B=$(cat /x) exec ip link > /dev/null 2>&1 &", ["cat", "ip"]],
    ["echo 'ip; nft' # tc", ["echo"]],
    ["say() { echo x; }; say; ip link", ["echo", "ip"]],
    ['cat > x <<EOF\nnft list\nEOF\n"$0" status', ["cat", "\u0000"]],
  ])("finds the commands of %s", (script, programs) => {
    const found = commandsOfScript(script).map(([program = ""]) => program);

    expect(found.toSorted()).toEqual([...programs].toSorted());
  });
});

describe("programsNotInstalled()", () => {
  const FILES = new Map([
    [
      "scripts/demo.ts",
      `import { run } from "./run.ts"; import type { T } from "../test/types.ts"; Bun.spawn(["ip"]);`,
    ],
    ["scripts/run.ts", `import { a } from "../test/a.ts"; spawn(join(import.meta.dir, "b.process.ts"));`],
    ["test/a.ts", `\nBun.spawn(["kill", "1"]); Bun.spawn(["sh", "-c", "kill 1"]);`],
    ["scripts/b.process.ts", `Bun.spawn(["strace", "mount"]);`],
    ["test/types.ts", `Bun.spawn(["tcpdump"]);`],
    ["test/other.ts", `Bun.spawn(["curl"]);`],
  ]);
  const found = (more: Partial<Target> = {}) =>
    programsNotInstalled(
      "make demo",
      { entry: "scripts/demo.ts", programs: ["ip"], ...more },
      FILES,
      startedPrograms(FILES),
    );

  test("reports what the entry and the files that it uses start, with file and line", () => {
    expect(found().map((message) => message.split(":").slice(0, 3).join(":"))).toEqual([
      'test/a.ts:2: make demo starts "kill" and does not install it',
      'scripts/b.process.ts:1: make demo starts "strace" and does not install it',
    ]);
  });

  test("reports neither what is installed nor what files besides start", () => {
    expect(found({ programs: ["ip", "kill"], besides: ["scripts/b.process.ts"] })).toEqual([]);
  });

  test("finds the files of every target", () => {
    const named = Object.values<Target>(TARGETS).flatMap(({ entry, besides = [] }) => [entry, ...besides]);

    expect(named.filter((path) => !existsSync(join(REPOSITORY, path)))).toEqual([]);
  });
});

describe("the gate", () => {
  const directory = temporaryDirectory("gate-programs");
  afterAll(() => directory.remove());

  function gateOn(text: string): { code: number; printed: string } {
    const file = join(directory.path, "test/some.test.ts");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    const command = [process.execPath, join(REPOSITORY, "scripts/programs.ts")];
    const { exitCode, stderr } = Bun.spawnSync(command, { cwd: directory.path });
    return { code: exitCode, printed: stderr.toString() };
  }

  test("fails on a program that is started and not declared, and reports file and line", () => {
    const { code, printed } = gateOn(`Bun.spawn(["ip", "link"]);\nBun.spawn(["tcpdump"]);`);

    expect(code).toBe(1);
    expect(printed).toStartWith('test/some.test.ts:2: starts "tcpdump"');
    expect(printed).not.toContain('"ip"');
  });

  test("passes if all are declared", () => {
    expect(gateOn(`Bun.spawn(["ip", "link"]);`)).toEqual({ code: 0, printed: "" });
  });

  test("is part of make lint", () => {
    expect(readFileSync(join(REPOSITORY, "scripts/lint.ts"), "utf8")).toContain("scripts/programs.ts");
  });
});

describe("the table of programs", () => {
  test("has a package for each program that a bare Debian lacks", () => {
    const lacking = ["etcdctl", "dnsmasq", "strace", "systemd-analyze", "/usr/include/asm-generic/unistd.h"];

    expect(lacking.filter((program) => PACKAGES[program] === undefined)).toEqual([]);
  });
});
