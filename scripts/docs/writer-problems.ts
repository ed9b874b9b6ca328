/**
 * Compares the table "One writer" of docs/architecture.md with what the sources import.
 *
 *   | what | `code`, `moreCode` | words, `agent/file.ts` (words) | `plugin/` and words |
 *
 * Only the files, and the files of the directories, in the last two columns may import the code. `object.method` is looked
 * for as text.
 */
const HEADING = "## One writer";
const CODE_SPAN = /`([^`]+)`/g;

interface Row {
  readonly code: readonly string[];
  /** Files, and directories that end with a slash. */
  readonly writers: ReadonlySet<string>;
}

/** `files`: all of `src/` without its tests, by their path below it. */
export function writerProblems(page: string, files: ReadonlyMap<string, string>): readonly string[] {
  const imports = new Map(Array.from(files, ([path, text]) => [path, importedNames(text)]));
  const rows = rowsOf(page);
  if (rows.length === 0) return [`there is no table below "${HEADING}"`];
  return rows.flatMap((row) => problemsOf(row, files, imports));
}

function problemsOf(
  { code, writers }: Row,
  files: ReadonlyMap<string, string>,
  imports: ReadonlyMap<string, ReadonlySet<string>>,
): readonly string[] {
  const names = code.map((name) => `"${name}"`).join(", ");
  const uses = (path: string) =>
    code.some((name) =>
      name.includes(".") ? files.get(path)?.includes(`${name}(`) : imports.get(path)?.has(name) === true,
    );
  const exports = (path: string) => code.some((name) => isExported(name, files.get(path) ?? ""));
  const isWriter = (path: string) =>
    writers.has(path) || [...writers].some((writer) => writer.endsWith("/") && path.startsWith(writer));
  const paths = [...files.keys()];
  return [
    ...code
      .filter((name) => !name.includes(".") && !paths.some((path) => isExported(name, files.get(path) ?? "")))
      .map((name) => `nothing exports "${name}"`),
    ...paths
      .filter((path) => uses(path) && !exports(path) && !isWriter(path))
      .map((path) => `"${path}" may not import ${names}: it is not a writer in the table of docs/architecture.md`),
    ...[...writers]
      .filter((path) => path.endsWith(".ts") && !uses(path) && !exports(path))
      .map((path) => `"${path}" does not import ${names}: remove it from the table of docs/architecture.md`),
  ];
}

function rowsOf(page: string): readonly Row[] {
  const [, section = ""] = page.split(`${HEADING}\n`);
  const [table = ""] = section.split("\n## ");
  return table.split("\n").flatMap((line) => {
    const [, , code = "", ...writers] = line.split("|");
    const names = spansIn(code);
    const paths = spansIn(writers.join("|")).filter((span) => /^[a-z].*(\.ts|\/)$/.test(span));
    return names.length === 0 ? [] : [{ code: names, writers: new Set(paths) }];
  });
}

function spansIn(text: string): readonly string[] {
  return Array.from(text.matchAll(CODE_SPAN), ([, span = ""]) => span);
}

function isExported(name: string, text: string): boolean {
  return new RegExp(`^export (?:async )?(?:function|class|const) ${name}\\b`, "m").test(text);
}

/** By values, not by types. */
function importedNames(text: string): ReadonlySet<string> {
  const lists = [
    ...text.matchAll(/^import \{([^}]*)\} from/gm),
    ...text.matchAll(/\{([^{}]*)\}\s*=\s*await import\(/g),
  ].flatMap(([, list = ""]) => list.split(","));
  const members = Array.from(text.matchAll(/import\([^()]*\)\)\.(\w+)/g), ([, name = ""]) => name);
  return new Set([...lists.map((each) => each.trim().split(/[\s:]/)[0] ?? ""), ...members].filter(isValue));
}

function isValue(name: string): boolean {
  return name !== "" && name !== "type";
}
