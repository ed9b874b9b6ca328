/**
 * Checks docs/coverage.md: it has a row for every clause of the specification, in its
 * words, and every row that is "done" or "otherwise" refers to existing code and an
 * existing test with the given title. "otherwise" and "not yet" need a remark.
 */
import type { Clause } from "./spec-clauses.ts";

export interface Files {
  /** The text of a file, `undefined` if it does not exist; an empty string for a directory. */
  read(path: string): string | undefined;
}

interface Row {
  readonly clause: string;
  readonly words: string;
  readonly code: string;
  readonly test: string;
  readonly state: string;
  readonly remark: string;
}

export function coverageProblems(page: string, clauses: readonly Clause[], files: Files): readonly string[] {
  const rows = rowsOf(page);
  const seen = rows.map((row) => row.clause);
  const known = new Map(clauses.map(({ id, words }) => [id, words]));
  return [
    ...clauses.filter(({ id }) => !seen.includes(id)).map(({ id }) => `${id}: no row`),
    ...seen.filter((id, place) => seen.indexOf(id) !== place).map((id) => `${id}: more than one row`),
    ...rows.flatMap((row) => wordProblems(row, known.get(row.clause)).map((problem) => `${row.clause}: ${problem}`)),
    ...rows.flatMap((row) => rowProblems(row, files).map((problem) => `${row.clause}: ${problem}`)),
  ];
}

function rowsOf(page: string): readonly Row[] {
  return page.split("\n").flatMap((line) => {
    const [, id = "", words = "", code = "", test = "", state = "", remark = ""] = line
      .split("|")
      .map((cell) => cell.trim());
    const clause = /^`(.+)`$/.exec(id)?.[1];
    return clause === undefined ? [] : [{ clause, words, code, test, state, remark }];
  });
}

function wordProblems(row: Row, words: string | undefined): readonly string[] {
  if (words === undefined) return ["the specification has no such clause"];
  return row.words.replaceAll("`", "") === words ? [] : [`the specification says "${words}"`];
}

function rowProblems(row: Row, files: Files): readonly string[] {
  const code = quoted(row.code);
  const tests = quoted(row.test);
  const missing = code.filter((path) => files.read(path) === undefined).map((path) => `no such code: ${path}`);
  const untrue = tests.flatMap((named) => testProblems(named, files));
  if (row.state === "not yet") {
    return [...(row.remark === "" ? ["not yet, without what is missing"] : []), ...missing, ...untrue];
  }
  if (row.state !== "done" && row.state !== "otherwise") {
    return [`the state is "${row.state}", none of "done", "otherwise" and "not yet"`];
  }
  return [
    ...(row.state === "otherwise" && row.remark === "" ? ["read otherwise without a reason"] : []),
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

/** `path/to/file.test.ts > "part of a title"`. */
function testProblems(named: string, files: Files): readonly string[] {
  const [path = "", ...rest] = named.split(" > ");
  const text = files.read(path);
  if (text === undefined || !/\.test\.tsx?$/.test(path)) return [`no such test: ${path}`];
  const title = /^"(.+)"$/.exec(rest.join(" > "))?.[1];
  if (title === undefined) return [`a test is named by its file and, in double quotes, its title: ${named}`];
  return text.includes(title) ? [] : [`no test in ${path} has "${title}" in its title`];
}

function quoted(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].flatMap((match) => match[1] ?? []);
}
