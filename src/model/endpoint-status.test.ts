import { describe, expect, test } from "bun:test";
import { isStatusOf, statusFileName } from "./endpoint-status.ts";

describe("statusFileName()", () => {
  const pod = { orchestrator: "k8s", namespace: "default", pod: "mypod", containerId: "c1", endpoint: "eth0" };

  test.each([
    [pod, "k8s default%2Fmypod eth0"],
    [{ ...pod, pod: "my.pod-1" }, "k8s default%2Fmy.pod-1 eth0"],
    [{ ...pod, orchestrator: "cni", pod: undefined }, "cni c1 eth0"],
    [{ ...pod, endpoint: "../a b" }, "k8s default%2Fmypod ..%2Fa%20b"],
  ])("of %p is %p", (owner, expected) => {
    expect(statusFileName(owner)).toBe(expected);
  });

  test("fits into a file system, and differs for two long names that begin alike", () => {
    const names = ["a", "b"].map((end) =>
      statusFileName({ ...pod, namespace: "n".repeat(63), pod: "p".repeat(252) + end }),
    );

    expect(names.map((name) => name.length)).toEqual([255, 255]);
    expect(names[0]).not.toBe(names[1] ?? "");
  });
});

describe("isStatusOf()", () => {
  test.each([
    ['{"containerID":"c1","ifaceName":"vend1"}', true],
    ['{"containerID":"c2"}', false],
    ["", false],
    ["null", false],
    ['{"containerID":"c1"', false],
  ])("%p: %p", (text, expected) => {
    expect(isStatusOf(text, "c1")).toBe(expected);
  });
});
