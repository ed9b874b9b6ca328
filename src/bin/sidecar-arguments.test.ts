import { describe, expect, test } from "bun:test";
import { DEFAULT_OPTIONS, readSidecarArguments } from "./sidecar-arguments.ts";

describe("readSidecarArguments()", () => {
  test("has a default for every option", () => {
    expect(readSidecarArguments([])).toEqual({ kind: "run", options: DEFAULT_OPTIONS });
  });

  test("reads options with the value after = or as the next argument", () => {
    const request = readSidecarArguments(
      ["--agent", "/a.sock", "--listen=/b.sock", "--trust-domain=*"].concat("--health-port=0", "--log-level", "debug"),
    );

    const options = {
      agent: "/a.sock",
      listen: "/b.sock",
      trustDomain: "*",
      healthPort: 0,
      logLevel: "DEBUG",
    } as const;
    expect(request).toEqual({ kind: "run", options });
  });

  test.each([["-v"], ["--version"], ["-h"], ["--help"]])("%s stands alone", (argument) => {
    expect(readSidecarArguments([argument]).kind).toBe(argument.includes("v") ? "version" : "help");
    expect(readSidecarArguments([argument, "more"]).kind).toBe("wrong");
  });

  test.each([
    ["agent"],
    ["--unknown=1"],
    ["--agent"],
    ["--agent=relative"],
    ["--listen="],
    ["--trust-domain=Upper"],
    ["--trust-domain="],
    ["--health-port=65536"],
    ["--health-port=x"],
    ["--log-level=LOUD"],
    ["constructor=1"],
    [""],
  ])("refuses %j", (argument) => {
    expect(readSidecarArguments([argument]).kind).toBe("wrong");
  });
});
