/** Reads a JUnit report of the test runner: the counts, and every skipped test with its full name. */
export interface TestReport {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** `file: describe > title (skipped: reason)`. */
  readonly skippedTests: readonly string[];
}

export const EMPTY_REPORT: TestReport = { passed: 0, failed: 0, skipped: 0, skippedTests: [] };

export function readReport(xml: string): TestReport {
  const root = /<testsuites [^>]*>/.exec(xml)?.[0] ?? "";
  const total = numberOf(root, "tests");
  const failed = numberOf(root, "failures");
  const skipped = numberOf(root, "skipped");
  return { passed: total - failed - skipped, failed, skipped, skippedTests: skippedTestsOf(xml) };
}

export function addReports(left: TestReport, right: TestReport): TestReport {
  return {
    passed: left.passed + right.passed,
    failed: left.failed + right.failed,
    skipped: left.skipped + right.skipped,
    skippedTests: [...left.skippedTests, ...right.skippedTests],
  };
}

function skippedTestsOf(xml: string): readonly string[] {
  return [...xml.matchAll(/<testcase ([^>]*[^/])>\s*<skipped/g)].map(([, attributes = ""]) => {
    const file = textOf(attributes, "file");
    return `${file}: ${textOf(attributes, "classname")} > ${textOf(attributes, "name")}`;
  });
}

function numberOf(element: string, name: string): number {
  return Number(textOf(element, name) || "0");
}

const ENTITIES: Readonly<Record<string, string>> = { quot: '"', apos: "'", lt: "<", gt: ">", amp: "&" };

function textOf(element: string, name: string): string {
  const raw = new RegExp(`(?:^| )${name}="([^"]*)"`).exec(element)?.[1] ?? "";
  return raw.replace(/&(\w+);/g, (whole, entity: string) => ENTITIES[entity] ?? whole);
}
