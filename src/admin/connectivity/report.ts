/** The results of a connectivity test as text. Pure. */
import type { Page } from "../terminal/page.ts";
import { formatTable } from "../terminal/table.ts";
import type { CheckResult } from "./judge.ts";

/** A table with one row per pair, and below it each failure with its reason and what to do. */
export function reportText(results: readonly CheckResult[], page: Page): string {
  const { red, green, yellow } = page.paint;
  const groups = [...Map.groupBy(results, ({ title, from, to }) => [title, from, to].join("\n")).values()];
  const rows = groups.flatMap((group) => {
    const [first] = group;
    return first === undefined ? [] : [[first.title, first.from, first.to, resultWords(group)]];
  });
  const table = formatTable(["CHECK", "FROM", "TO", "RESULT"], rows, page);
  const coloured = table
    .replaceAll(/FAILED/g, (word) => red(word))
    .replaceAll(/skipped(?=[^\n]*\n)/g, (word) => yellow(word));
  const summary = summaryOf(results);
  const failures = groups.flatMap((group) => failureLines(group));
  const skipped = groups.flatMap((group) => skippedLine(group));
  const end = results.some(isFailed) ? red(summary) : green(summary);
  return [coloured, ...[...failures, ...skipped].map((line) => `${line}\n`), `\n${end}\n`].join("");
}

export function isFailed({ result }: CheckResult): boolean {
  return result === "failed";
}

const WORDS = { ok: "ok", failed: "FAILED", skipped: "skipped" } as const;

/** `ok (IPv4, IPv6)`, or `FAILED (IPv6), ok (IPv4)`. */
function resultWords(group: readonly CheckResult[]): string {
  return (["failed", "skipped", "ok"] as const)
    .flatMap((result) => {
      const members = group.filter((each) => each.result === result);
      const families = members.flatMap(({ family }) => family ?? []);
      if (members.length === 0) return [];
      return families.length === 0 ? [WORDS[result]] : [`${WORDS[result]} (${families.join(", ")})`];
    })
    .join(", ");
}

function failureLines(group: readonly CheckResult[]): readonly string[] {
  const failed = group.filter(isFailed);
  const [first] = failed;
  if (first === undefined) return [];
  const remedies = new Set(failed.flatMap(({ remedy }) => remedy ?? []));
  return [
    `\nFailed: ${first.title}, ${first.from} to ${first.to}`,
    ...failed.map(({ family, reason = "" }) => `  ${family === undefined ? "" : `${family}: `}${reason}`),
    ...[...remedies].map((remedy) => `  What to do: ${remedy}`),
  ];
}

function skippedLine(group: readonly CheckResult[]): readonly string[] {
  const first = group.find(({ result }) => result === "skipped");
  return first === undefined ? [] : [`\nSkipped: ${first.title}, ${first.from} to ${first.to}: ${first.reason ?? ""}`];
}

function summaryOf(results: readonly CheckResult[]): string {
  const count = (wanted: CheckResult["result"]) => results.filter(({ result }) => result === wanted).length;
  return `${results.length} checks: ${count("ok")} ok, ${count("failed")} failed, ${count("skipped")} skipped`;
}
