import { describe, expect, test } from "bun:test";
import { ProblemReport } from "./problem-report.ts";

describe("ProblemReport", () => {
  const open = (isOfInterest = () => true) => {
    const reports: string[] = [];
    const published: (readonly string[])[] = [];
    const report = new ProblemReport({
      report: (problem) => void reports.push(problem),
      publish: (problems) => void published.push(problems),
      isOfInterest,
    });
    return { reports, published, look: (...problems: readonly string[]) => report.look(problems) };
  };

  test("reports a problem that lasts, once, and again after it was gone", () => {
    const { reports, look } = open();
    look("a", "b");
    look("a");
    look("a");
    expect(reports).toEqual(["a"]);
    look();
    look("a");
    look("a");
    expect(reports).toEqual(["a", "a"]);
  });

  test("publishes what lasts when it changes, and at first, because a former agent may have published something", () => {
    const { published, look } = open();
    look("a", "b");
    look("a", "b");
    look("b", "a");
    look("a");
    look();
    expect(published).toEqual([[], ["a", "b"], ["a"], []]);
  });

  test("reports nothing while there are no other nodes", () => {
    let isOfInterest = false;
    const { reports, look } = open(() => isOfInterest);
    look("a");
    look("a");
    isOfInterest = true;
    look("a");
    expect(reports).toEqual(["a"]);
  });
});
