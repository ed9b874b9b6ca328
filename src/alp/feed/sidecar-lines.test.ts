import { describe, expect, test } from "bun:test";
import { SIDECAR_PROTOCOL } from "../protocol/sidecar-state.ts";
import { encodeLine, readSidecarLine, replyToHello } from "./sidecar-lines.ts";

describe("readSidecarLine()", () => {
  test("reads a greeting and an acknowledgement, without the fields of later releases", () => {
    expect(readSidecarLine(`{"type":"hello","protocol":1,"version":"1.2.3","more":true}`)).toEqual({
      type: "hello",
      protocol: 1,
      version: "1.2.3",
    });
    expect(readSidecarLine(`{"type":"applied","revision":7}`)).toEqual({ type: "applied", revision: 7 });
  });

  test("reads a release of 64 characters", () => {
    const version = `v1.0.0-${"9".repeat(57)}`;
    expect(readSidecarLine(`{"type":"hello","protocol":1,"version":"${version}"}`)).toMatchObject({ version });
  });

  test.each([
    ...["", "null", "[]", "7", `"hello"`, "{", `{"type":"hello"}`, `{"type":"update","revision":1}`],
    ...[`{"type":"hello","protocol":0,"version":"1.0.0"}`, `{"type":"hello","protocol":1.5,"version":"1.0.0"}`],
    ...[`{"type":"hello","protocol":"1","version":"1.0.0"}`, `{"type":"hello","protocol":1,"version":""}`],
    ...["latest", "1", `1.0.0-${"9".repeat(59)}`, "1.0.0 x"].map(
      (version) => `{"type":"hello","protocol":1,"version":"${version}"}`,
    ),
    `{"type":"hello","protocol":1,"version":"a\\nb"}`,
    ...[`{"type":"applied","revision":-1}`, `{"type":"applied","revision":"1"}`, `{"type":"applied"}`],
  ])("refuses %j", (line) => {
    expect(readSidecarLine(line)).toBeUndefined();
  });
});

describe("replyToHello()", () => {
  const hello = { type: "hello" as const, version: "9.9.9" };

  test("welcomes a sidecar that speaks a protocol of the agent", () => {
    expect(replyToHello({ ...hello, protocol: SIDECAR_PROTOCOL }, "1.0.0")).toEqual({
      type: "welcome",
      protocol: SIDECAR_PROTOCOL,
      version: "1.0.0",
    });
  });

  test("refuses a newer sidecar, and says what to do", () => {
    const reply = replyToHello({ ...hello, protocol: SIDECAR_PROTOCOL + 1 }, "1.0.0");
    expect(reply.type).toBe("refused");
    expect(encodeLine(reply)).toContain("upgrade");
    expect(encodeLine(reply)).toContain("9.9.9");
  });
});
