/**
 * Checks docs/coverage.md: it has a row for every rule of the specification, and
 * every row that is "done" refers to existing code and an existing test with the
 * given title.
 */
export interface Files {
  /** The text of a file, `undefined` if it does not exist; an empty string for a directory. */
  read(path: string): string | undefined;
}

interface Row {
  readonly rule: string;
  readonly code: string;
  readonly test: string;
  readonly state: string;
}

export function coverageProblems(page: string, rules: readonly string[], files: Files): readonly string[] {
  const rows = rowsOf(page);
  const seen = rows.map((row) => row.rule);
  const known = new Set(rules);
  return [
    ...rules.filter((rule) => !seen.includes(rule)).map((rule) => `${rule}: no row`),
    ...seen.filter((rule, place) => seen.indexOf(rule) !== place).map((rule) => `${rule}: more than one row`),
    ...seen.filter((rule) => !known.has(rule)).map((rule) => `${rule}: the specification has no such rule`),
    ...rows.flatMap((row) => rowProblems(row, files).map((problem) => `${row.rule}: ${problem}`)),
  ];
}

function rowsOf(page: string): readonly Row[] {
  return page.split("\n").flatMap((line) => {
    const cells = line.split("|").map((cell) => cell.trim());
    const rule = /^`(.+)`$/.exec(cells[1] ?? "")?.[1];
    if (rule === undefined) return [];
    return [{ rule, code: cells[3] ?? "", test: cells[4] ?? "", state: cells[5] ?? "" }];
  });
}

function rowProblems(row: Row, files: Files): readonly string[] {
  const code = quoted(row.code);
  const tests = quoted(row.test);
  const missing = code.filter((path) => files.read(path) === undefined).map((path) => `no such code: ${path}`);
  const untrue = tests.flatMap((named) => testProblems(named, files));
  if (row.state === "not yet") return [...missing, ...untrue];
  if (row.state !== "done") return [`the state is "${row.state}", neither "done" nor "not yet"`];
  return [
    ...(code.length === 0 ? ["done without code"] : []),
    ...(tests.length === 0 ? ["done without a test"] : []),
    ...(tests.length > 0 && tests.every(isSchemaTest) ? ["done, but its only test is of the schema"] : []),
    ...missing,
    ...untrue,
  ];
}

/** That a field is accepted does not show that anything acts on it. */
function isSchemaTest(named: string): boolean {
  return named.startsWith("src/config/schema.test.ts");
}

/** `path/to/file.test.ts` or `path/to/file.test.ts > "part of a title"`. */
function testProblems(named: string, files: Files): readonly string[] {
  const [path = "", title] = named.split(" > ");
  const text = files.read(path);
  if (text === undefined || !path.endsWith(".test.ts")) return [`no such test: ${path}`];
  const words = title === undefined ? undefined : /^"(.+)"$/.exec(title)?.[1];
  if (title !== undefined && words === undefined) return [`a title must be in double quotes: ${named}`];
  return words === undefined || text.includes(words) ? [] : [`no test in ${path} has "${words}" in its title`];
}

function quoted(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].flatMap((match) => match[1] ?? []);
}
