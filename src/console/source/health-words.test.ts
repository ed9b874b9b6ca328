import { describe, expect, test } from "bun:test";
import { identity } from "../../identity.ts";
import { gravest, gravestFirst, isCommand, problemOf } from "./health-words.ts";

const { adminTool } = identity;

describe("isCommand()", () => {
  test.each([
    [`${adminTool} install`, true],
    ["kubectl --namespace kube-system logs a --all-containers", true],
    [`${adminTool} delete pool blue, then apply it again`, false],
    [`add another pool: ${adminTool} apply -f POOL.yaml; look for leaks: ${adminTool} ipam check`, false],
    ["use the tool of the cluster's release", false],
    [`${adminTool} get ippools or ask an administrator`, false],
  ])("%s: %p", (remedy, expected) => {
    expect(isCommand(remedy)).toBe(expected);
  });
});

test("a problem has its remedy as a command to copy, or else as words", () => {
  const finding = { state: "failed", subject: "node a", message: "not Ready" } as const;

  expect(problemOf({ ...finding, remedy: "kubectl describe node a" })).toEqual({
    ...{ state: "failed", message: "node a: not Ready", command: "kubectl describe node a" },
  });
  expect(problemOf({ ...finding, remedy: "restart it" }, { withoutSubject: true })).toEqual({
    ...{ state: "failed", message: "not Ready", remedy: "restart it" },
  });
});

test("the gravest state counts, and what is unknown only if nothing else is known", () => {
  expect(gravest(["ok", "unknown", "warning"])).toBe("warning");
  expect(gravest(["unknown", "ok"])).toBe("ok");
  expect([gravest(["unknown"]), gravest([])]).toEqual(["unknown", "unknown"]);
  const [failed, warning] = (["failed", "warning"] as const).map((state) => ({ state, message: state }));
  expect(gravestFirst([warning, failed].flatMap((each) => each ?? [])).map(({ state }) => state)).toEqual([
    "failed",
    "warning",
  ]);
});
