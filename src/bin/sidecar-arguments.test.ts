import { describe, expect, test } from "bun:test";
import { DEFAULT_OPTIONS, readSidecarArguments } from "./sidecar-arguments.ts";

describe("readSidecarArguments()", () => {
  test("has a default for every option", () => {
    expect(readSidecarArguments([])).toEqual({ kind: "run", options: DEFAULT_OPTIONS });
  });

  test("reads options with the value after = or as the next argument", () => {
    const request = readSidecarArguments(
      ["--agent", "/a.sock", "--listen=/b.sock", "--also-listen=/c.sock", "--trust-domain=*"].concat(
        "--health-port=0",
        "--log-level",
        "debug",
      ),
    );

    const options = {
      agent: "/a.sock",
      listen: "/b.sock",
      alsoListen: "/c.sock",
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

  const level = "ERROR, WARNING, INFO, DEBUG";
  const domain = "the name of a trust domain in lower case, or * for every one";
  test.each([
    [["agent"], 'Unknown argument "agent"'],
    [["--unknown=1"], 'Unknown argument "--unknown=1"'],
    [["constructor=1"], 'Unknown argument "constructor=1"'],
    [[""], 'Unknown argument ""'],
    [["--agent"], 'Option "--agent" needs a value: an absolute path'],
    [["--agent", "--listen=/b.sock"], 'Option "--agent" needs a value: an absolute path'],
    [["--agent=relative"], 'Invalid value "relative" of option "--agent": expected an absolute path'],
    [["--listen="], 'Invalid value "" of option "--listen": expected an absolute path'],
    [["--trust-domain=Upper"], `Invalid value "Upper" of option "--trust-domain": expected ${domain}`],
    [["--trust-domain="], `Invalid value "" of option "--trust-domain": expected ${domain}`],
    [["--health-port=65536"], 'Invalid value "65536" of option "--health-port": expected a port, or 0 for none'],
    [["--health-port", "x"], 'Invalid value "x" of option "--health-port": expected a port, or 0 for none'],
    [["--log-level=LOUD"], `Invalid value "LOUD" of option "--log-level": expected ${level}`],
  ])("refuses %j", (args, problem) => {
    expect(readSidecarArguments(args)).toEqual({ kind: "wrong", problem });
  });
});
