import { describe, expect, test } from "bun:test";
import { type NodeRequest, readNodeArguments } from "./node-arguments.ts";

const CASES: readonly (readonly [string, NodeRequest])[] = [
  ["", { kind: "agent" }],
  ["-v", { kind: "version" }],
  ["-h", { kind: "help" }],
  ["--help", { kind: "help" }],
  ["--host-namespaces /proc/1/ns", { kind: "agent", hostNamespaces: "/proc/1/ns" }],
  ["--host-namespaces=/host/proc/1/ns", { kind: "agent", hostNamespaces: "/host/proc/1/ns" }],
  ["--host-namespaces", { kind: "wrong", argument: "--host-namespaces" }],
  ["--host-namespaces=", { kind: "wrong", argument: "--host-namespaces=" }],
  ["--host-namespaces proc", { kind: "wrong", argument: "--host-namespaces" }],
  ["--parent 7", { kind: "wrong", argument: "--parent" }],
  ["serve-calls", { kind: "call server" }],
  ["serve-calls --parent 7", { kind: "call server", parent: 7 }],
  ["serve-calls --parent seven", { kind: "wrong", argument: "--parent" }],
  ["serve-calls --host-namespaces /proc/1/ns", { kind: "wrong", argument: "--host-namespaces" }],
  ["serve-calls again", { kind: "wrong", argument: "again" }],
  ["collect-flows", { kind: "flow collector" }],
  ["collect-flows --parent 7", { kind: "flow collector", parent: 7 }],
  ["collect-flows --host-namespaces /proc/1/ns", { kind: "wrong", argument: "--host-namespaces" }],
  ["install", { kind: "install" }],
  ["install --host-namespaces /proc/1/ns", { kind: "install", hostNamespaces: "/proc/1/ns" }],
  ["uninstall", { kind: "uninstall" }],
  ["uninstall --host-namespaces /proc/1/ns --stay", { kind: "uninstall", hostNamespaces: "/proc/1/ns", stays: true }],
  ["uninstall --keep-files", { kind: "uninstall", keepsFiles: true }],
  ["install --keep-files", { kind: "wrong", argument: "--keep-files" }],
  ["install --stay", { kind: "wrong", argument: "--stay" }],
  ["--stay", { kind: "wrong", argument: "--stay" }],
  ["install --parent 7", { kind: "wrong", argument: "--parent" }],
  ["start", { kind: "wrong", argument: "start" }],
];

describe("readNodeArguments()", () => {
  test.each(CASES)("reads '%s'", (text, request) => {
    expect(readNodeArguments(text.split(" ").filter((word) => word !== ""))).toEqual(request);
  });

  test("refuses an empty argument", () => {
    expect(readNodeArguments([""])).toEqual({ kind: "wrong", argument: "" });
  });
});
