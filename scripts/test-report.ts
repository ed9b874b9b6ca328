/** Reads the JUnit reports of the test runner, adds them up, and replaces what was run a second time. Pure. */
export interface TestCase {
  readonly file: string;
  /** `describe > title (skipped: reason)`. */
  readonly name: string;
  readonly outcome: "passed" | "failed" | "skipped";
  /** What the runner recorded of a failure: the message and where; nothing if it recorded nothing. */
  readonly reason?: string;
}

export interface TestReport {
  readonly cases: readonly TestCase[];
  /** Failures of the runner that belong to no test: a crash, a file that cannot be loaded. */
  readonly otherFailures: number;
}

export const EMPTY_REPORT: TestReport = { cases: [], otherFailures: 0 };
export const CRASHED: TestReport = { cases: [], otherFailures: 1 };

export function readReport(xml: string): TestReport {
  const root = /<testsuites [^>]*>/.exec(xml)?.[0] ?? "";
  const cases = [...xml.matchAll(/<testcase ([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)].map(
    ([, attributes = "", content = ""]): TestCase => ({
      file: textOf(attributes, "file"),
      name: [textOf(attributes, "classname"), textOf(attributes, "name")].filter(Boolean).join(" > "),
      outcome: outcomeOf(content),
      ...reasonOf(content),
    }),
  );
  const failed = cases.filter(({ outcome }) => outcome === "failed").length;
  return { cases, otherFailures: Math.max(0, Number(textOf(root, "failures") || "0") - failed) };
}

export function addReports(left: TestReport, right: TestReport): TestReport {
  return {
    cases: [...left.cases, ...right.cases],
    otherFailures: left.otherFailures + right.otherFailures,
  };
}

export function countsOf({ cases, otherFailures }: TestReport): Readonly<Record<TestCase["outcome"], number>> {
  const count = (wanted: TestCase["outcome"]) => cases.filter(({ outcome }) => outcome === wanted).length;
  return { passed: count("passed"), failed: count("failed") + otherFailures, skipped: count("skipped") };
}

/** `file: name` of the tests with that outcome. */
export function namesOf({ cases }: TestReport, outcome: TestCase["outcome"]): readonly string[] {
  return cases.filter((each) => each.outcome === outcome).map(({ file, name }) => `${file}: ${name}`);
}

/** The failed tests as lines to read: the name of each, and below it the first lines of its reason. */
export function failureLines({ cases }: TestReport, mostLines: number): readonly string[] {
  return cases
    .filter(({ outcome }) => outcome === "failed")
    .flatMap(({ file, name, reason = "" }) => {
      const lines = reason.split("\n").filter((line) => line.trim() !== "");
      return [`failed: ${file}: ${name}`, ...lines.slice(0, mostLines).map((line) => `    ${line}`)];
    });
}

export function failedFiles({ cases }: TestReport): readonly string[] {
  return [...new Set(cases.filter(({ outcome }) => outcome === "failed").map(({ file }) => file))];
}

/** The first report, with all tests of the failed files as they ended in the second run. */
export function replaceFailedFiles(first: TestReport, second: TestReport): TestReport {
  const files = new Set(failedFiles(first));
  return addReports({ ...first, cases: first.cases.filter(({ file }) => !files.has(file)) }, second);
}

/** `file: name` of the tests that failed in the first run and not in the second. */
export function passedAlone(first: TestReport, second: TestReport): readonly string[] {
  const repeated = new Set(second.cases.map(({ file }) => file));
  const failedAgain = new Set(namesOf(second, "failed"));
  const cases = first.cases.filter(({ file }) => repeated.has(file));
  return namesOf({ ...first, cases }, "failed").filter((name) => !failedAgain.has(name));
}

function outcomeOf(content: string): TestCase["outcome"] {
  if (content.includes("<failure")) return "failed";
  return content.includes("<skipped") ? "skipped" : "passed";
}

/** A runner that has no text of the failure has a message, such as "test timed out". */
function reasonOf(content: string): { readonly reason?: string } {
  const [, attributes = "", text = ""] = /<failure([^>]*?)(?:\/>|>([\s\S]*?)<\/failure>)/.exec(content) ?? [];
  const reason = unescaped(text).trim() || textOf(attributes, "message");
  return reason === "" ? {} : { reason };
}

const ENTITIES: Readonly<Record<string, string>> = { quot: '"', apos: "'", lt: "<", gt: ">", amp: "&", "#10": "\n" };

function textOf(element: string, name: string): string {
  return unescaped(new RegExp(`(?:^| )${name}="([^"]*)"`).exec(element)?.[1] ?? "");
}

function unescaped(raw: string): string {
  return raw.replace(/&(#?\w+);/g, (whole, entity: string) => ENTITIES[entity] ?? whole);
}
