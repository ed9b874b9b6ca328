import { describe, expect, test } from "bun:test";
import { PEER_COMMANDS } from "../../scripts/docs/peer-commands.ts";
import { parseArguments } from "../../src/admin/main/arguments.ts";
import { COMMON_OPTIONS, type Command, type CommandGroup, optionsOf } from "../../src/admin/main/command.ts";
import { COMMANDS } from "../../src/admin/main/commands.ts";

/** The command that the words begin with, and the words after it. */
function commandIn(
  words: readonly string[],
  group: CommandGroup = COMMANDS,
): { command?: Command; rest: readonly string[] } {
  const [first, ...rest] = words;
  const found = group.commands.find(({ name }) => name === first);
  if (found === undefined) return { rest: words };
  return found.kind === "group" ? commandIn(rest, found) : { command: found, rest };
}

/** What the reference lists of the peer's tool. */
const OF_PEER = [
  ..."create apply replace delete get patch label convert validate version".split(" "),
  ...["show", "check", "release", "configure", "split"].map((name) => `ipam ${name}`),
  ...["status", "run", "diags", "checksystem"].map((name) => `node ${name}`),
  "cluster diags",
  ..."--skip-empty --skip-exists --skip-not-exists --export --all-namespaces --recursive --overwrite --remove --ignore-validation".split(
    " ",
  ),
  ..."--show-blocks --show-borrowed --show-configuration --show-all-ips --show-problem-ips --from-report --strictaffinity".split(
    " ",
  ),
  ..."--log-dir --kernel-config --since --max-logs --max-parallelism --focus-nodes --skip-temp-dir-cleanup --poll --context --config --allow-version-mismatch".split(
    " ",
  ),
];

describe("PEER_COMMANDS", () => {
  test.each(PEER_COMMANDS.flatMap(({ ours }) => ours?.split(", ") ?? []))("%s exists", (line) => {
    const { command, rest } = commandIn(line.split(" "));
    const options = command === undefined ? COMMON_OPTIONS : optionsOf(command);
    const isOptionOnly = command === undefined && line.startsWith("-");

    expect(command !== undefined || isOptionOnly).toBe(true);
    expect(() =>
      parseArguments(
        rest,
        options.map(({ oneOf: _, ...option }) => option),
      ),
    ).not.toThrow();
  });

  test.each(OF_PEER)("has a row for %s", (words) => {
    expect(
      PEER_COMMANDS.some(({ theirs }) =>
        theirs
          .split(/[ ,=[\]]+/)
          .join(" ")
          .includes(words),
      ),
    ).toBe(true);
  });
});
