import { describe, expect, test } from "bun:test";
import { dirname, resolve } from "node:path";
import type { Command, CommandGroup } from "./command.ts";
import { COMMANDS } from "./commands.ts";

const SOURCES = resolve(import.meta.dir, "../..");

/** What help, completion and docs need, beside the descriptions of the commands themselves. */
const MOST_LINES = 6_000;

/** What only the code of a command needs. */
const LOADED_WHEN_CALLED = [
  /^datastore\/(open|etcd\/|kube\/|sqlite\/)/,
  /^(agent|controllers|firewall|ipam|kube|linux|operator|plugin|policy\/compile|release\/crds|routing)\//,
  /^upgrade\/(engine|steps)\//,
  /^admin\/kinds\//,
];

/** The files that are loaded with one: imports of types alone are not, nor is what `import()` names. */
async function loadedWith(file: string, loaded = new Map<string, number>()): Promise<ReadonlyMap<string, number>> {
  const path = file.slice(SOURCES.length + 1);
  if (loaded.has(path) || !file.endsWith(".ts")) return loaded;
  const text = await Bun.file(file).text();
  loaded.set(path, text.split("\n").length);
  for (const each of new Bun.Transpiler({ loader: "ts" }).scanImports(text)) {
    if (each.kind !== "import-statement" || !each.path.startsWith(".")) continue;
    await loadedWith(resolve(dirname(file), each.path), loaded);
  }
  return loaded;
}

/** What starts all commands has the whole context; a command declares the pieces that it takes. */
const HAS_WHOLE_CONTEXT = /^admin\/(main\/|version\/version-check\.ts$)/;
const WHOLE_CONTEXT = /^import type \{[^}]*\bContext\b[^}]*\} from "[^"]*\/main\/context\.ts";|\brun\(context[,)]/m;

function* commandsIn(group: Command | CommandGroup): Generator<Command> {
  for (const member of group.commands ?? []) {
    if (member.kind === "command") yield member;
    yield* commandsIn(member);
  }
}

describe("COMMANDS", () => {
  test("are described without loading what they run", async () => {
    const loaded = await loadedWith(resolve(import.meta.dir, "run.ts"));

    expect([...loaded.keys()].filter((path) => LOADED_WHEN_CALLED.some((part) => part.test(path)))).toEqual([]);
    expect(loaded.keys().toArray()).toContain("admin/main/commands.ts");
    expect(loaded.values().reduce((sum, lines) => sum + lines, 0)).toBeLessThan(MOST_LINES);
  });

  test("load the package of JSON patches for these alone", async () => {
    const files = [...new Bun.Glob("**/*.ts").scanSync(SOURCES)].filter((path) => !path.endsWith(".test.ts"));
    const texts = await Promise.all(files.map((path) => Bun.file(resolve(SOURCES, path)).text()));
    const start = await loadedWith(resolve(import.meta.dir, "run.ts"));
    const patch = await loadedWith(resolve(SOURCES, "admin/edit/patch.ts"));

    expect(files.filter((_, index) => texts[index]?.includes('"json-p3"'))).toEqual(["admin/edit/json-patch.ts"]);
    expect([...start.keys(), ...patch.keys()]).not.toContain("admin/edit/json-patch.ts");
  });

  test.each([...commandsIn(COMMANDS)].map((command) => [command.name, command] as const))(
    "%s: its code is loaded when it is called",
    async (_, command) => {
      expect((await command.load()).run).toBeFunction();
    },
  );

  test("declare the pieces of the context that they take", async () => {
    const files = [...new Bun.Glob("**/*.ts").scanSync(SOURCES)].filter(
      (path) => /^(admin|alp\/command)\//.test(path) && !/\.test\.ts$/.test(path) && !HAS_WHOLE_CONTEXT.test(path),
    );
    const texts = await Promise.all(files.map((path) => Bun.file(resolve(SOURCES, path)).text()));

    expect(files.length).toBeGreaterThan(100);
    expect(files.filter((_, index) => WHOLE_CONTEXT.test(texts[index] ?? ""))).toEqual([]);
  });
});
