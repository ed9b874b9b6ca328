import { describe, expect, test } from "bun:test";
import { addReports, readReport } from "../../scripts/test-report.ts";

const XML = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="bun test" tests="5" assertions="9" failures="1" skipped="2" time="0.1">
  <testsuite name="a.test.ts" file="a.test.ts" tests="5" failures="1" skipped="2">
    <testcase name="works" classname="a" time="0" file="a.test.ts" line="2" assertions="0" />
    <testcase name="says &quot;no&quot; (skipped: needs root)" classname="a &amp; b" time="0" file="a.test.ts" line="2">
      <skipped />
    </testcase>
    <testcase name="breaks" classname="a" time="0" file="a.test.ts" line="4"><failure type="AssertionError" /></testcase>
    <testcase name="later" classname="a" time="0" file="a.test.ts" line="5">
      <skipped message="TODO" />
    </testcase>
    <testcase name="works too" classname="a" time="0" file="a.test.ts" line="6" />
  </testsuite>
</testsuites>`;

describe("readReport()", () => {
  test("reads the counts from the runner's totals, not from the suites inside", () => {
    expect(readReport(XML)).toMatchObject({ passed: 2, failed: 1, skipped: 2 });
  });

  test("lists every skipped test with its full name, and no other", () => {
    expect(readReport(XML).skippedTests).toEqual([
      'a.test.ts: a & b > says "no" (skipped: needs root)',
      "a.test.ts: a > later",
    ]);
  });
});

describe("addReports()", () => {
  test("adds the counts and joins the names", () => {
    const report = readReport(XML);

    expect(addReports(report, report)).toMatchObject({ passed: 4, failed: 2, skipped: 4 });
    expect(addReports(report, report).skippedTests).toHaveLength(4);
  });
});
