import { describe, expect, test } from "bun:test";
import {
  addReports,
  CRASHED,
  countsOf,
  failedFiles,
  failureLines,
  namesOf,
  passedAlone,
  readReport,
  replaceFailedFiles,
  type TestCase,
} from "../../scripts/test-report.ts";

const XML = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="bun test" tests="6" assertions="9" failures="2" skipped="2" time="0.1">
  <testsuite name="a.test.ts" file="a.test.ts" tests="5" failures="1" skipped="2">
    <testcase name="works" classname="a" time="0" file="a.test.ts" line="2" assertions="0" />
    <testcase name="says &quot;no&quot; (skipped: needs root)" classname="a &amp; b" time="0" file="a.test.ts" line="2">
      <skipped />
    </testcase>
    <testcase name="breaks" classname="a" time="0" file="a.test.ts" line="4"><failure type="AssertionError" message="1 &lt; 2">in &lt;testcase>&#10;</failure></testcase>
    <testcase name="later" classname="a" time="0" file="a.test.ts" line="5">
      <skipped message="TODO" />
    </testcase>
    <testcase name="works too" classname="" time="0" file="a.test.ts" line="6" />
  </testsuite>
  <testsuite name="b.test.ts" file="b.test.ts" tests="1" failures="1" skipped="0">
    <testcase name="(unnamed)" classname="b" time="0" file="b.test.ts" assertions="0"><failure type="Error" /></testcase>
  </testsuite>
</testsuites>`;

describe("readReport()", () => {
  test("reads the outcome of every test", () => {
    expect(countsOf(readReport(XML))).toEqual({ passed: 2, failed: 2, skipped: 2 });
  });

  test("names every test with its file and groups", () => {
    expect(namesOf(readReport(XML), "skipped")).toEqual([
      'a.test.ts: a & b > says "no" (skipped: needs root)',
      "a.test.ts: a > later",
    ]);
    expect(namesOf(readReport(XML), "failed")).toEqual(["a.test.ts: a > breaks", "b.test.ts: b > (unnamed)"]);
    expect(namesOf(readReport(XML), "passed")).toEqual(["a.test.ts: a > works", "a.test.ts: works too"]);
  });

  test("counts failures that belong to no test", () => {
    expect(countsOf(readReport(XML.replace('failures="2"', 'failures="3"'))).failed).toBe(3);
  });
});

describe("failureLines()", () => {
  test("names each failed test, with the first lines of what it says", () => {
    const report = readReport(
      XML.replace("in &lt;testcase>&#10;", "in &lt;testcase>&#10;&#10;- 1&#10;+ 2&#10;").replace(
        '<failure type="Error" />',
        '<failure type="TimeoutError" message="test timed out" />',
      ),
    );
    expect(failureLines(report, 2)).toEqual([
      "failed: a.test.ts: a > breaks",
      "    in <testcase>",
      "    - 1",
      "failed: b.test.ts: b > (unnamed)",
      "    test timed out",
    ]);
  });
});

describe("addReports()", () => {
  test("adds the counts and joins the names", () => {
    const both = addReports(readReport(XML), readReport(XML));

    expect(countsOf(both)).toEqual({ passed: 4, failed: 4, skipped: 4 });
    expect(namesOf(both, "skipped")).toHaveLength(4);
  });
});

describe("a second run of the failed files", () => {
  const ended = (file: string, name: string, outcome: TestCase["outcome"]): TestCase => ({ file, name, outcome });
  const first = {
    cases: [ended("a", "one", "failed"), ended("a", "two", "passed"), ended("b", "three", "passed")],
    otherFailures: 0,
  };

  test("replaces all of their tests, also those that the first run did not reach", () => {
    const second = { cases: ["one", "two", "four"].map((name) => ended("a", name, "passed")), otherFailures: 0 };

    expect(failedFiles(first)).toEqual(["a"]);
    expect(countsOf(replaceFailedFiles(first, second))).toEqual({ passed: 4, failed: 0, skipped: 0 });
    expect(passedAlone(first, second)).toEqual(["a: one"]);
  });

  test("keeps what failed again, and every failure that belongs to no test", () => {
    const second = { cases: [ended("a", "one", "failed"), ended("a", "two", "passed")], otherFailures: 1 };

    expect(countsOf(replaceFailedFiles({ ...first, otherFailures: 1 }, second)).failed).toBe(3);
    expect(passedAlone(first, second)).toEqual([]);
  });

  test("does not claim that a test has passed if the runner crashed", () => {
    expect(countsOf(replaceFailedFiles(first, CRASHED))).toEqual({ passed: 1, failed: 1, skipped: 0 });
    expect(passedAlone(first, CRASHED)).toEqual([]);
  });
});
