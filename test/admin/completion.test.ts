/** Completion in the real shells. */
import { afterAll, describe, expect } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { visibleCommands } from "../../src/admin/main/command.ts";
import { COMMANDS } from "../../src/admin/main/commands.ts";
import { API_VERSION, identity } from "../../src/identity.ts";
import { program, testNeeding } from "../support/needs.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const TOOL = `dist/bin/${identity.adminTool}`;
const directory = temporaryDirectory("completion");
const folder = directory.path;
afterAll(() => directory.remove());

const ENVIRONMENT = {
  PATH: `${resolve("dist/bin")}:${process.env["PATH"] ?? ""}`,
  HOME: folder,
  DATASTORE_TYPE: "embedded",
  DATASTORE_PATH: join(folder, "store.db"),
};

async function fileOf(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await Bun.write(path, text);
  return path;
}

/** The words offered when the user presses Tab after `words`. */
type Completing = (words: readonly string[]) => readonly string[];

const bash: Completing = (words) => {
  const script = `source <(${TOOL} completion bash); COMP_WORDS=(${words.map((word) => `"${word}"`).join(" ")});
    COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _${identity.adminTool}; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return lines(["bash", "--norc", "-c", script]);
};

const fish: Completing = (words) => {
  const script = `${TOOL} completion fish | source; complete -C "${words.join(" ")}"`;
  return lines(["fish", "--no-config", "-c", script]).map((line) => line.split("\t")[0] ?? "");
};

/** zsh completes only at its prompt: needs a terminal and a line to complete; every word it offers is written to a file. */
const ZSH_SETUP = `
  autoload -Uz compinit; compinit -D -u
  source <(\${=TOOL} completion zsh)
  compadd() {
    if [[ \${@[(I)-[a-zA-Z]#[OAD]*]} -eq 0 ]]; then
      local -a offered; builtin compadd -O offered "$@"; print -rl -- $offered >> $OFFERS
    fi
    builtin compadd "$@"
  }
  zle-line-init() { BUFFER=$LINE CURSOR=$#LINE; zle complete-word; BUFFER=" exit"; zle accept-line }
  zle -N zle-line-init
`;

const zsh: Completing = (words) => {
  const offers = join(folder, "offers");
  writeFileSync(join(folder, ".zshrc"), ZSH_SETUP);
  writeFileSync(offers, "");
  Bun.spawnSync(["script", "-qec", "zsh -i", "/dev/null"], {
    env: { ...ENVIRONMENT, ZDOTDIR: folder, TERM: "dumb", TOOL, OFFERS: offers, LINE: words.join(" ") },
    timeout: 20_000,
  });
  return nonEmptyLines(readFileSync(offers, "utf8"));
};

function lines(command: readonly string[]): readonly string[] {
  return nonEmptyLines(Bun.spawnSync([...command], { env: ENVIRONMENT }).stdout.toString());
}

function nonEmptyLines(text: string): readonly string[] {
  return text.split("\n").filter((line) => line !== "");
}

describe.each([
  ["bash", bash],
  ["fish", fish],
  ["zsh", zsh],
] as const)("completion in %s", (shell, complete) => {
  const tool = identity.adminTool;

  testNeeding(program(shell))("offers the names of resources", () => {
    const pools = ["blue", "blau"].map((name, index) => ({
      apiVersion: API_VERSION,
      kind: "IPPool",
      metadata: { name },
      spec: { cidr: `10.0.${index}.0/24` },
    }));
    const stdin = Buffer.from(JSON.stringify({ kind: "List", items: pools }));
    expect(Bun.spawnSync([TOOL, "apply", "-f", "-"], { env: ENVIRONMENT, stdin }).exitCode).toBe(0);

    expect([...complete([tool, "get", "pool", "bl"])].sort()).toEqual(["blau", "blue"]);
    expect(complete([tool, "-o", "json", "delete", "ippools", "blue", "bl"])).toEqual(["blau"]);
    expect(complete([tool, "edit", "pool", "blue", "bl"])).toEqual([]);
    expect(complete([tool, "get", "pool", "--no-he"])).toEqual(["--no-headers"]);
  });

  testNeeding(program(shell))("offers commands, options, values and files", async () => {
    const file = await fileOf("some-file.conf", "{}");
    // zsh offers only the last part of a path.
    const filesFor = (...words: string[]) =>
      complete([tool, ...words, file.slice(0, -3)]).map((path) => basename(path));

    expect([...complete([tool, ""])].sort()).toEqual([...visibleCommands(COMMANDS).map(({ name }) => name)].sort());
    expect(complete([tool, "config", ""])).toEqual(["check"]);
    expect(complete([tool, "config", "check", "--eff"])).toEqual(["--effective"]);
    expect([...complete([tool, "config", "check", "-o", ""])].sort()).toEqual(["json", "text"]);
    expect([...complete([tool, "get", "-o", ""])].sort()).toEqual([
      "custom-columns=",
      "json",
      "jsonpath=",
      "name",
      "ps",
      "table",
      "wide",
      "yaml",
    ]);
    expect(complete([tool, "-o", "json", "ipam", "sh"])).toEqual(["show"]);
    expect(complete([tool, "get", "ippo"])).toEqual(["ippool"]);
    expect(complete([tool, "explain", "ippo"])).toEqual(["ippool"]);
    expect(filesFor("apply", "-f")).toEqual(["some-file.conf"]);
    expect([...complete([tool, "completion", ""])].sort()).toEqual(["bash", "fish", "zsh"]);
    expect(filesFor("config", "check")).toEqual(["some-file.conf"]);
  });
});

describe.each([
  ["bash", ["bash", "-n"]],
  ["zsh", ["zsh", "--no-rcs", "-n"]],
  ["fish", ["fish", "--no-config", "--no-execute"]],
] as const)("the completion script of %s", (shell, command) => {
  testNeeding(program(shell))("is one that the shell can read", async () => {
    const script = await fileOf(`completion.${shell}`, Bun.spawnSync([TOOL, "completion", shell]).stdout.toString());
    const { exitCode, stderr } = Bun.spawnSync([...command, script]);

    expect(stderr.toString()).toBe("");
    expect(exitCode).toBe(0);
  });
});
