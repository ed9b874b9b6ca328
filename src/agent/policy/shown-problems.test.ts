import { describe, expect, test } from "bun:test";
import { readProblems } from "../../health/problems-file.ts";
import { EFFECT, type PolicyProblem } from "../../policy/compile/policy-problems.ts";
import { orderProblems, ShownProblems } from "./shown-problems.ts";

const problem = (title: string, effect: PolicyProblem["effect"] = EFFECT.denies, reason = "it is too large") => ({
  ...{ title, effect, reason },
});
const titles = (problems: readonly PolicyProblem[]) => orderProblems(problems).map(({ title }) => title);

describe("orderProblems()", () => {
  test("begins with those that can open something", () => {
    expect(titles([problem("red/a"), problem("default", EFFECT.kept), problem("prefix", EFFECT.exempt)])).toEqual([
      "default",
      "prefix",
      "red/a",
    ]);
  });

  test("those of one namespace do not hide others, and never those of the cluster", () => {
    const red = ["red/a", "red/b", "red/c"];
    expect(titles([...red, "blue/a", "global"].map((title) => problem(title)))).toEqual([
      ...["global", "red/a", "blue/a", "red/b", "red/c"],
    ]);
    expect(titles([...red, "blue/a"].map((title) => problem(title, EFFECT.kept)))).toEqual([
      ...["red/a", "blue/a", "red/b", "red/c"],
    ]);
  });
});

describe("ShownProblems", () => {
  function shown() {
    const [errors, warnings, files]: [string[], string[], string[]] = [[], [], []];
    const problems = new ShownProblems({
      error: (message) => void errors.push(message),
      warn: (message) => void warnings.push(message),
      folder: { path: "/run", write: (_, text) => void files.push(text) },
    });
    return { problems, errors, warnings, files };
  }

  test("an edit that changes the reason is in the file, and not another error in the log", () => {
    const { problems, errors, files } = shown();
    for (const reason of ["first", "second", "second"]) problems.show([problem("red/a", EFFECT.denies, reason)]);

    expect(errors).toEqual(['"red/a" denies more than it says: first']);
    expect(files.map((text) => readProblems(text))).toEqual([
      ['"red/a" denies more than it says: first'],
      ['"red/a" denies more than it says: second'],
    ]);
  });

  test("one that was over is logged again", () => {
    const { problems, errors, files } = shown();
    for (const all of [[problem("red/a")], [], [problem("red/a")]]) problems.show(all);

    expect([errors.length, files.map((text) => readProblems(text).length)]).toEqual([2, [1, 0, 1]]);
  });

  test("what may become a problem is a warning in the log, once, and the last in the file", () => {
    const { problems, errors, warnings, files } = shown();
    for (const reason of ["first", "second"]) problems.show([problem("red/a")], [problem("red", EFFECT.near, reason)]);

    expect([errors.length, warnings]).toEqual([1, ['"red" is a namespace near its limit: first']]);
    expect(readProblems(files.at(-1) ?? "")).toEqual([
      '"red/a" denies more than it says: it is too large',
      '"red" is a namespace near its limit: second',
    ]);
  });
});
