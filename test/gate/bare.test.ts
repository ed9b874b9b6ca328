import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { asAnotherMachine } from "../../scripts/bare/another-machine.ts";
import { acquireSettings, archivesIn, debianSources } from "../../scripts/bare/apt-settings.ts";
import { bareMachineProblem } from "../../scripts/bare/machine.ts";
import { needlessReasons, outcomeOf } from "../../scripts/bare/outcome.ts";
import { root, testNeeding } from "../support/needs.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const problem = await bareMachineProblem(join(import.meta.dir, "../.."));

describe("debianSources()", () => {
  const KEYRING = "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg";

  test.each<[string, string, boolean]>([
    ["one-line entries", "deb http://mirror.invalid/debian bookworm main", true],
    ["entries in paragraphs", `Types: deb\nSuites: bookworm bookworm-updates\n${KEYRING}`, true],
    ["an entry that is commented out", "# deb http://mirror.invalid/debian bookworm main", false],
    ["another release", "deb http://mirror.invalid/debian trixie main", false],
    ["a stranger's keyring", "deb [signed-by=/etc/apt/keyrings/other.gpg] http://other.invalid bookworm stable", false],
    ["a stranger's suite", "Types: deb\nSuites: nodistro\nSigned-By: /usr/share/keyrings/other.gpg", false],
  ])("uses only Debian's own: %s", (_what, text, isTaken) => {
    expect(debianSources(new Map([["/file", text]]), "bookworm")).toEqual(isTaken ? ["/file"] : []);
  });
});

describe("archivesIn()", () => {
  const URL = "http://mirror.invalid/debian";

  test.each<[string, string, readonly string[]]>([
    ["a line", `deb [arch=amd64] ${URL}/ bookworm main\ndeb http://other.invalid bookworm-security main`, [URL]],
    ["a paragraph", `Types: deb\n# http://snapshot.invalid\nURIs: ${URL}\nSuites: bookworm bookworm-updates`, [URL]],
    ["a file with mirrors", "Types: deb\nURIs: mirror+file:/etc/apt/mirrors/debian.list\nSuites: bookworm", []],
    ["another release", `deb ${URL} trixie main`, []],
  ])("reads the address of %s", (_what, text, archives) => {
    expect(archivesIn(text, "bookworm")).toEqual(archives);
  });
});

describe("asAnotherMachine()", () => {
  const hasTimeNamespaces = existsSync("/proc/self/ns/time") ? undefined : "needs time namespaces in the kernel";
  const script = "cat /proc/sys/kernel/hostname; cat /proc/uptime; grep btime /proc/stat";

  testNeeding(root, hasTimeNamespaces)("has another name each time, and was booted minutes ago", () => {
    const machines = Array.from({ length: 5 }, () => {
      const { stdout, exitCode } = Bun.spawnSync([...asAnotherMachine(), "sh", "-c", script]);
      const [name = "", uptime = "", bootTime = ""] = stdout.toString().split("\n");
      const minutesSince = (seconds: number) => (Date.now() / 1000 - seconds) / 60;
      return { exitCode, name, minutes: [parseFloat(uptime) / 60, minutesSince(Number(bootTime.split(" ")[1]))] };
    });

    expect(machines.filter(({ exitCode }) => exitCode !== 0)).toEqual([]);
    expect(new Set([hostname(), ...machines.map(({ name }) => name)]).size).toBeGreaterThan(3);
    expect(machines.flatMap(({ minutes }) => minutes).filter((each) => each < 0.9 || each > 11)).toEqual([]);
  });
});

describe("acquireSettings()", () => {
  test("keeps settings with a value, and only those of Acquire", () => {
    const dump = `Acquire "";\nAcquire::http "";\nAcquire::http::Proxy "http://proxy.invalid:3128";\nDir "/";\n`;

    expect(acquireSettings(dump)).toBe(`Acquire::http::Proxy "http://proxy.invalid:3128";\n`);
  });
});

describe("outcomeOf()", () => {
  const NESTED = "skipped: test/d.test.ts: d > e (skipped: is on a bare machine already)";
  const GO = "skipped: test/a.test.ts: cnitool > adds (skipped: cnitool needs Go to be built)";
  const SOAK = "skipped: test/e.test.ts: e > f (skipped: needs nft, only in `make soak`)";
  const PEER = "skipped: test/g.test.ts: g > h (skipped: calico is not built: run `bun test/parts/build.ts calico`)";
  const STRACE = "skipped: test/b.test.ts: b > c (skipped: needs the program strace)";

  test("counts the skipped tests of each reason, and reads the last line", () => {
    const outcome = outcomeOf(
      ["1 passed, 0 failed, 0 skipped of one group", GO, GO, "9 passed, 0 failed, 2 skipped"].join("\n"),
    );

    expect(outcome).toEqual({
      counts: "9 passed, 0 failed, 2 skipped",
      reasons: new Map([["cnitool needs Go to be built", 2]]),
    });
  });

  test("has no counts if the tests did not finish", () => {
    expect(outcomeOf("make: *** [Makefile:26: test] Error 1\n").counts).toBeUndefined();
  });

  test("reports reasons that the machine itself gives, and a missing reason", () => {
    const outcome = outcomeOf([NESTED, SOAK, PEER, GO, STRACE, "skipped: test/c.test.ts: c > silent"].join("\n"));

    expect(needlessReasons(outcome)).toEqual([
      "cnitool needs Go to be built",
      "needs the program strace",
      "no reason given: test/c.test.ts: c > silent",
    ]);
  });
});

describe("what an interrupted run leaves in the temporary directory", () => {
  const directory = temporaryDirectory("interrupted");
  afterAll(() => directory.remove());
  const environment = { ...process.env, TMPDIR: directory.path };

  async function interrupt(command: readonly string[], signOfLife: RegExp): Promise<number> {
    const child = Bun.spawn([...command], { env: environment, stdin: "ignore", stdout: "pipe", stderr: "ignore" });
    const reader = child.stdout.getReader();
    let printed = "";
    while (!signOfLife.test(printed)) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`it ended with ${await child.exited} after: ${printed}`);
      printed += new TextDecoder().decode(value);
    }
    expect(readdirSync(directory.path)).toHaveLength(1);
    child.kill("SIGINT");
    return child.exited;
  }

  test("is nothing of make test, although its tests removed nothing", async () => {
    const module = JSON.stringify(join(import.meta.dir, "../../scripts/test-run.ts"));
    const leaves = 'mkdir "$TMPDIR"/vt-etcd-left; echo begun; exec sleep 60';
    const script = `import { step } from ${module}; await step("tests", ["sh", "-c", ${JSON.stringify(leaves)}]);`;

    expect(await interrupt([process.execPath, "-e", script], /begun/)).toBe(130);
    expect(readdirSync(directory.path)).toEqual([]);
  });

  test("is nothing of tests in two lanes, which both end", async () => {
    const module = JSON.stringify(join(import.meta.dir, "../../scripts/test-run.ts"));
    const pids = temporaryDirectory("lanes");
    const says = 'echo $$ > "$PIDS/$0"; echo a.test.ts:; echo begun; echo b.test.ts:; exec sleep 60';
    const script = `import { step } from ${module};
      const options = { output: "blocks of a file", environment: { PIDS: ${JSON.stringify(pids.path)} } };
      const lane = (name) => step(name, ["sh", "-c", ${JSON.stringify(says)}, name], options);
      await Promise.all([lane("one"), lane("two")]);`;

    expect(await interrupt([process.execPath, "-e", script], /begun[\s\S]*begun/)).toBe(130);
    const left = readdirSync(pids.path).filter((name) =>
      existsSync(`/proc/${readFileSync(join(pids.path, name), "utf8").trim()}`),
    );
    pids.remove();
    expect([left, readdirSync(directory.path)]).toEqual([[], []]);
  });

  testNeeding(problem)("is nothing of make bare", async () => {
    const command = [process.execPath, join(import.meta.dir, "../../scripts/bare.ts")];

    expect(await interrupt(command, /bare: installs a Debian/)).toBe(130);
    expect(readdirSync(directory.path)).toEqual([]);
  });
});
