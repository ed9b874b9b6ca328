import { describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { VERSION } from "../../version.ts";
import { COMPLETION_SHELLS } from "../completion/shells.ts";
import { type Command, type CommandGroup, EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "./command.ts";
import { COMMANDS } from "./commands.ts";

function everyMember(
  group: CommandGroup,
  words: readonly string[] = [],
): readonly [string[], Command | CommandGroup][] {
  return group.commands.flatMap((member): readonly [string[], Command | CommandGroup][] => {
    const path = [...words, member.name];
    return [[path, member], ...(member.kind === "group" ? everyMember(member, path) : [])];
  });
}

const MEMBERS = everyMember(COMMANDS);

describe("runAdmin()", () => {
  test.each(MEMBERS.map(([path, member]) => [path.join(" "), member] as const))(
    "%s explains itself",
    async (path, member) => {
      const asked = await runInside([...path.split(" "), "--help"]);

      expect(asked.code).toBe(EXIT_OK);
      expect(asked.stdout).toContain(member.summary);
      expect(asked.stdout).toContain(`${identity.adminTool} ${path}`);
      expect(await runInside(["help", ...path.split(" ")])).toEqual(asked);
      if (member.kind === "command")
        expect(asked.stdout).toContain(`${identity.adminTool} ${member.examples[0]?.command}`);
    },
  );

  test.each([[["version", "--client"]], [["--version"]], [["-v"]]])(
    "%j prints the version of the tool",
    async (words) => {
      expect((await runInside(words)).stdout).toBe(`${identity.adminTool} ${VERSION}\n`);
      expect(JSON.parse((await runInside([...words, "-o", "json"])).stdout)).toEqual({ clientVersion: VERSION });
    },
  );

  test.each([
    [[], "Commands:"],
    [["config"], "check"],
    [["confg"], 'did you mean "config"?'],
    [["gte"], 'did you mean "get"?'],
    [["list"], 'did you mean "get" or "network list"?'],
    [["release"], 'did you mean "ipam release"?'],
    [["check"], '"datastore check" or "datastore migrate check" or "ipam check" or "node check" or "config check"'],
    [["pools"], 'did you mean "get pools"?'],
    [["config", "chek"], '"check"'],
    [["config", "check", "--efective", "x"], '"--effective"'],
    [["config", "check", "-x"], '"-x"'],
    [["config", "check", "--effective=yes", "x"], "does not take a value"],
    [["config", "check", "-o"], "text or json"],
    [["config", "check", "-o", "yaml", "x"], "yaml"],
    [["completion"], "bash"],
    [["completion", "tcsh"], "bash"],
    [["version", "extra"], "extra"],
    [["--nonsense"], "--nonsense"],
    [["--outptu", "json", "version"], 'did you mean "--output"?'],
    [["-o"], "Commands:"],
    [["-n", "prod", "version"], '"-n"'],
    [["help", "version", "x"], "version"],
    [["ipam", "show", "--ip", "10.0.0.1", "--ip", "10.0.0.2"], '"--ip"'],
    [["patch", "pool", "a", "-p", "{}", "--patch={a: 1}"], '"--patch"'],
    [["ipam", "show", "--ip", "10.0.0.1", "--show-configuration"], "--show-configuration"],
    [["ipam", "show", "--show-blocks", "--show-configuration"], "--show-configuration"],
    [["get", "pool/a/b"], '"a/b" is not a valid IPPool name'],
    [["get", "wep", "a", "-A"], "--all-namespaces"],
    [["get", "wep/prod/a", "--all-namespaces"], "--all-namespaces"],
  ])("reports %p as wrong usage with a hint", async (args, hint) => {
    const { code, stdout, stderr } = await runInside(args);

    expect(code).toBe(EXIT_USAGE);
    expect(stdout).toBe("");
    expect(stderr).toContain(hint);
  });

  test.each([
    [["get"], "get"],
    [["ipam", "show", "x"], "ipam show"],
    [["ipam", "shw"], "ipam"],
    [["nonsense"], ""],
    [["get", "apply"], "get"],
    [["-o", "json", "ipam", "--datastore-type", "embedded", "show", "x"], "ipam show"],
  ])("points a wrong call of %p to the help of %p", async (args, command) => {
    const call = [identity.adminTool, ...(command === "" ? [] : [command]), "--help"].join(" ");

    expect((await runInside(args)).stderr).toEndWith(`Try "${call}".\n`);
  });

  test.each([
    [["-o", "json", "version"]],
    [["--output=json", "version"]],
    [["-ojson", "--version"]],
    [["--etcd-endpoints", "http://127.0.0.1:1", "-o", "json", "ipam", "show"]],
    [["ipam", "-o", "json", "show", "--ip", "10.0.0.1"]],
  ])("accepts global options before the command: %p", async (args) => {
    const { code, stdout } = await runInside(args, { openDatastore: async () => openMemory() });

    expect([code, typeof JSON.parse(stdout)]).toEqual([EXIT_OK, "object"]);
  });

  test("shows help after global options", async () => {
    expect((await runInside(["-o", "json", "--help"])).stdout).toContain("Commands:");
  });

  test("accepts an option twice if the values are the same", async () => {
    expect((await runInside(["version", "-o", "json", "--output=json"])).code).toBe(EXIT_OK);
  });

  test.each([[["help", "--help"]], [["help", "get", "-h"]]])("prints help if requested twice: %p", async (args) => {
    expect((await runInside(args)).code).toBe(EXIT_OK);
  });

  test.each([
    [{ isTerminal: true, showsProgress: false }, false],
    [{ isTerminal: false, showsProgress: true }, true],
    [{ isTerminal: false, showsProgress: true, env: { NO_COLOR: "1" } }, false],
  ])("colours errors if stderr is a terminal, whatever stdout is: %p", async (surroundings, coloured) => {
    for (const args of [["get"], ["get", "pool", "x"], ["delete", "pool", "x"], []]) {
      const { stderr } = await runInside(args, surroundings);
      expect([args, stderr.includes("\u001b[")]).toEqual([args, coloured]);
    }
  });

  test.each([
    [{ isTerminal: false }, false],
    [{ isTerminal: true }, true],
    [{ isTerminal: true, env: { NO_COLOR: "1" } }, false],
    [{ isTerminal: true, env: { NO_COLOR: "" } }, true],
    [{ isTerminal: true, env: { TERM: "dumb" } }, false],
  ])("uses colours only on a terminal that supports them: %p", async (surroundings, coloured) => {
    const { stdout } = await runInside(["--help"], surroundings);

    expect(stdout.includes("\u001b[")).toBe(coloured);
  });

  test.each(COMPLETION_SHELLS.map((shell) => [shell]))("completes every command in %s", async (shell) => {
    const { stdout } = await runInside(["completion", shell]);

    for (const [path, member] of MEMBERS) {
      const isHidden = member.kind === "command" && member.isHidden === true;
      expect([path, stdout.includes(`"${path.join(" ")}"`)]).toEqual([path, !isHidden]);
    }
    expect(stdout).toContain("effective");
  });
});

const CONFIG = JSON.stringify({
  name: "pods",
  cniVersion: "1.0.0",
  type: identity.product,
  ipam: { type: identity.ipamType },
});

describe("--log-level", () => {
  test("debug logs each request, without its content", async () => {
    const { code, stderr } = await runInside(["get", "pools", "--log-level", "debug"]);

    expect(code).toBe(EXIT_OK);
    expect(stderr).toMatch(/debug: open the etcd datastore: done in \d+ ms/);
    expect(stderr).toMatch(/debug: read \S+ippools\S*: done in \d+ ms/);
  });

  test("-l is the level before a command, and the selector after it", async () => {
    expect((await runInside(["-l", "debug", "get", "pools"])).stderr).toContain("debug: ");
    expect((await runInside(["-ldebug", "get", "pools"])).stderr).toContain("debug: ");
    expect((await runInside(["-l", "info", "get", "pools", "-l", "a=b"])).stderr).toBe("No resources found.\n");
    expect((await runInside(["-l", "loud", "get", "pools"])).code).toBe(EXIT_USAGE);
  });
});

describe("config check", () => {
  const check = (text: string, ...flags: string[]) =>
    runInside(["config", "check", ...flags, "f"], { files: { f: text } });

  test("accepts a valid config, in a file and on stdin", async () => {
    expect(await check(CONFIG)).toMatchObject({ code: EXIT_OK, stdout: "f: ok\n" });
    expect(await runInside(["config", "check", "-"], { stdin: CONFIG })).toMatchObject({ stdout: "stdin: ok\n" });
  });

  describe("of a directory", () => {
    const DIRECTORY = "/etc/cni/net.d";
    const OTHER = JSON.stringify({ name: "podman", cniVersion: "1.0.0", plugins: [{ type: "bridge" }] });
    const files = {
      [`${DIRECTORY}/10-pods.conf`]: CONFIG,
      [`${DIRECTORY}/87-podman.conflist`]: OTHER,
      [`${DIRECTORY}/cni.lock`]: "",
    };
    const run = (args: readonly string[], more: object = {}) =>
      runInside(["config", "check", ...args], { files: { ...files, ...more } });

    test.each([
      ["that of this host, without FILE", []],
      ["one that is named", [`${DIRECTORY}/`]],
    ])("checks the files that runtimes read: %s", async (_, args) => {
      const { code, stdout } = await run(args);
      const lines = stdout.split("\n").filter((line) => !line.includes(" note: "));

      expect(code).toBe(EXIT_OK);
      expect(lines).toEqual([`${DIRECTORY}/10-pods.conf: ok`, `${DIRECTORY}/87-podman.conflist: ok`, ""]);
    });

    test("skips podman's lock file that the shell's * names", async () => {
      const { code, stdout } = await run([`${DIRECTORY}/10-pods.conf`, `${DIRECTORY}/cni.lock`]);

      expect({ code, stdout }).toEqual({ code: EXIT_OK, stdout: `${DIRECTORY}/10-pods.conf: ok\n` });
    });

    test("says so if there is none", async () => {
      const { code, stderr } = await runInside(["config", "check"]);

      expect(code).toBe(EXIT_FAILED);
      expect(stderr).toContain(`Cannot check ${DIRECTORY}: it contains no network config`);
    });

    test("says that podman skips a second network of the same name", async () => {
      const copy = `${DIRECTORY}/20-copy.conf`;
      const { code, stdout } = await run([copy], { [copy]: CONFIG });

      expect(code).toBe(EXIT_OK);
      expect(stdout).toMatch(/20-copy\.conf:1:\d+: warning: "name" is not unique: .*10-pods\.conf comes first/);
      expect(stdout).toEndWith(`${copy}: would fail on this host\n`);
      expect(JSON.parse((await run([copy, "-o", "json"], { [copy]: CONFIG })).stdout).files).toMatchObject([
        { ok: true, wouldFail: true, findings: [{ failsHere: true }] },
      ]);
      expect((await run(["--skip-files", copy], { [copy]: CONFIG })).stdout).toBe(`${copy}: ok\n`);
    });
  });

  test("warns of an embedded datastore that does not exist", async () => {
    const text = (path: string) => CONFIG.replace("{", `{"datastore_type":"embedded","datastore_path":"${path}",`);

    expect((await check(text(import.meta.path))).stdout).toBe("f: ok\n");
    const { code, stdout } = await check(text("/no/such.sqlite"));
    expect(code).toBe(EXIT_OK);
    expect(stdout).toContain('warning: the datastore "/no/such.sqlite" does not exist yet, so it has no pools');
    expect(stdout).toEndWith("f: ok, with 1 warning\n");
  });

  test('says "would fail" of a network that a runtime of this host refuses', async () => {
    const podman = { name: "podman", readsSeveralVersions: false, newestVersion: "0.4.0" } as const;
    const cniHost = { runtimes: [podman], pluginDirectories: [], plugins: new Set<string>(), unreadable: [] };
    const { stdout } = await runInside(["config", "check", "f"], { files: { f: CONFIG }, cniHost });

    expect(stdout).toContain("warning: podman of this host refuses the network");
    expect(stdout).toEndWith("f: would fail on this host\n");
  });

  test("shows each problem with its position", async () => {
    const { code, stdout } = await check(
      CONFIG.replace('{"type"', '{\n  "assign_ipv4": true, "type"').replace('"pods"', '"a b"'),
    );

    expect(code).toBe(EXIT_FAILED);
    expect(stdout.split("\n").map((line) => line.split(" ")[0])).toEqual(["f:1:9:", "f:2:18:", ""]);
  });

  test("checks our plugins of a list, and only the structure around the others", async () => {
    const list = {
      name: "pods",
      cniVersion: "1.0.0",
      plugins: [
        { type: identity.product, num_queues: -1, ipam: { type: identity.ipamType } },
        { type: "portmap", num_queues: -1, capabilities: { portMappings: true } },
      ],
    };
    const found = JSON.parse((await check(JSON.stringify(list), "-o", "json")).stdout);

    expect(found.files[0].findings.map(({ path }: { path: string }) => path)).toEqual(["plugins[0].num_queues"]);
  });

  test.each([
    ["[]", ""],
    ["{", ""],
    [JSON.stringify({ cniVersion: "1.0.0", plugins: [{ type: "portmap" }] }), "name"],
    [JSON.stringify({ name: "a", cniVersion: "1.0.0", plugins: [] }), "plugins"],
    [JSON.stringify({ name: "a", cniVersion: "1.0.0", plugins: [{ type: "bridge" }, { type: 5 }] }), "plugins[1].type"],
    [JSON.stringify({ name: "a", cniVersion: "1.0.0", type: "bridge", capabilities: 1 }), "capabilities"],
  ])("refuses %s", async (text, path) => {
    const { code, stdout } = await check(text, "-o", "json");
    const [finding] = JSON.parse(stdout).files[0].findings.filter(
      ({ severity }: { severity: string }) => severity === "error",
    );

    expect(code).toBe(EXIT_FAILED);
    expect(finding.path).toBe(path);
  });

  test("looks for the files named in a config, unless disabled", async () => {
    const text = CONFIG.replace("{", '{"kubernetes":{"kubeconfig":"/no/such/file"},');

    expect((await check(text)).code).toBe(EXIT_FAILED);
    expect((await check(text, "--skip-files")).code).toBe(EXIT_OK);
  });

  test("accepts unknown fields, another plugin's type and a list without our plugin, and says so", async () => {
    const warned = async (text: string) => JSON.parse((await check(text, "-o", "json")).stdout).files[0];

    for (const [text, severities] of [
      [CONFIG.replace("{", '{"log_levle":"info",'), ["warning"]],
      ['{"name":"a","cniVersion":"1.0.0","type":"bridge"}', ["note"]],
      ['{"name":"a","cniVersion":"1.0.0","plugins":[{"type":"bridge"}]}', ["warning", "note"]],
    ] as const) {
      expect(await warned(text)).toMatchObject({ ok: true, findings: severities.map((severity) => ({ severity })) });
    }
  });

  test("prints the config with all defaults and without secrets", async () => {
    const text = CONFIG.replace("{", '{"etcd_endpoints":"http://user:MARK@host:2379",');
    const { code, stdout } = await check(text, "--effective");
    const effective = JSON.parse(stdout.slice(stdout.indexOf("{")));

    expect(code).toBe(EXIT_OK);
    expect(stdout).not.toContain("MARK");
    expect(stdout).not.toContain("token");
    expect(effective).toMatchObject({ datastore_type: "etcdv3", num_queues: 1, ipam: { assign_ipv4: "true" } });
    expect(JSON.parse((await check(text, "--effective", "-o", "json")).stdout).files[0].effective).toEqual(effective);
  });

  test("an effective config is valid, and is its own effective config", async () => {
    const once = JSON.parse((await check(CONFIG, "--effective", "-o", "json")).stdout).files[0].effective;
    const twice = JSON.parse((await check(JSON.stringify(once), "--effective", "-o", "json")).stdout).files[0];

    expect(twice.ok).toBe(true);
    expect(twice.effective).toEqual(once);
  });

  test("reads the pools of the config's datastore, and closes it", async () => {
    const store = openMemory();
    const pool = { apiVersion: API_VERSION, kind: "IPPool", metadata: { name: "blue" }, spec: { cidr: "10.0.0.0/16" } };
    await runInside(["apply", "-f", "-"], { store, stdin: JSON.stringify(pool) });
    const ipam = { type: identity.ipamType, ipv4_pools: ["blue", "red"] };
    const file = JSON.stringify({ name: "a", cniVersion: "1.0.0", type: identity.product, ipam });
    const { code, stdout } = await runInside(["config", "check", "-"], { store, stdin: file });

    expect(code).toBe(EXIT_FAILED);
    expect(stdout.match(/error: .*/g)).toEqual([expect.stringContaining('Cannot use pool "red": no such pool')]);
    expect((await runInside(["config", "check", "--skip-files", "-"], { store, stdin: file })).code).toBe(EXIT_OK);
  });

  test("reports a missing file", async () => {
    expect(await runInside(["config", "check", "nowhere"])).toMatchObject({ code: EXIT_FAILED });
  });
});
