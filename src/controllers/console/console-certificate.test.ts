import { describe, expect, test } from "bun:test";
import { CONSOLE, CONSOLE_HOSTS } from "../../release/workloads/names.ts";
import { consoleNames, hasConsole } from "./console-certificate.ts";

const OWN = [
  `${CONSOLE}.here.svc`,
  CONSOLE,
  `${CONSOLE}.here`,
  `${CONSOLE}.here.svc.cluster.local`,
  "localhost",
  "127.0.0.1",
  "::1",
] as const;

describe("consoleNames()", () => {
  test("are those of the Service and of kubectl port-forward", () => {
    expect(consoleNames("here", { metadata: {}, spec: {} })).toEqual(OWN);
    expect(consoleNames("here", {})).toEqual(OWN);
  });

  test("have each address of the Service, and each host once", () => {
    const metadata = { annotations: { [CONSOLE_HOSTS]: "console.example.org, 192.0.2.7,localhost" } };
    const spec = { clusterIP: "10.96.0.7", clusterIPs: ["10.96.0.7", "fd00::7"] };

    expect(consoleNames("here", { metadata, spec })).toEqual([
      ...OWN,
      "10.96.0.7",
      "fd00::7",
      "console.example.org",
      "192.0.2.7",
    ]);
  });

  test("spell addresses as certificates do, and leave out what is no host", () => {
    const metadata = {
      annotations: { [CONSOLE_HOSTS]: "fd00:0:0::7,*.example.org,https://a,1.2.3,a:b,a.example.org" },
    };
    expect(consoleNames("here", { metadata })).toEqual([...OWN, "fd00::7", "a.example.org"]);
  });

  test("have the address of a Service of an API server that knows one alone, and none of a headless one", () => {
    expect(consoleNames("here", { spec: { clusterIP: "10.96.0.7" } })).toEqual([...OWN, "10.96.0.7"]);
    expect(consoleNames("here", { spec: { clusterIP: "None", clusterIPs: ["None"] } })).toEqual(OWN);
  });
});

describe("hasConsole()", () => {
  test.each([
    ["Enabled", true],
    ["Disabled", false],
    ["", false],
    [undefined, false],
  ])("%p: %p", (value, expected) => expect(hasConsole({ CONSOLE: value })).toBe(expected));

  test("refuses anything else", () => {
    expect(() => hasConsole({ CONSOLE: "yes" })).toThrow(
      expect.objectContaining({ kind: "config-invalid", message: expect.stringContaining('"yes"') }),
    );
  });
});
