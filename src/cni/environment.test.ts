import { describe, expect, test } from "bun:test";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { allowsOwnNetns, CNI_COMMANDS, checkEnvironment, pluginDirectories } from "./environment.ts";

const GOOD = { CNI_CONTAINERID: "c1", CNI_NETNS: "/n", CNI_IFNAME: "eth0", CNI_PATH: "/p" };

const NEEDED: Readonly<Record<(typeof CNI_COMMANDS)[number], readonly string[]>> = {
  ADD: ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"],
  CHECK: ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"],
  DEL: ["CNI_CONTAINERID", "CNI_IFNAME", "CNI_PATH"],
  GC: ["CNI_PATH"],
  STATUS: ["CNI_PATH"],
  VERSION: [],
};

describe("checkEnvironment()", () => {
  const rows = CNI_COMMANDS.flatMap((command) =>
    Object.keys(GOOD).map((name) => [command, name, NEEDED[command].includes(name)] as const),
  );

  test.each(rows)("%s without %s is refused: %p", (command, name, refused) => {
    const check = () => checkEnvironment({ ...GOOD, [name]: undefined }, command);

    if (refused) expect(thrownBy(check).message).toContain(name);
    else expect(check).not.toThrow();
  });

  test.each(rows)("%s with %s empty is refused: %p", (command, name, refused) => {
    const check = () => checkEnvironment({ ...GOOD, [name]: "" }, command);

    if (refused) expect(thrownBy(check).kind).toBe("environment-invalid");
    else expect(check).not.toThrow();
  });

  test.each(CNI_COMMANDS.filter((command) => NEEDED[command].length > 0).map((command) => [command] as const))(
    "%s reports everything that is missing at once",
    (command) => {
      const { message } = thrownBy(() => checkEnvironment({}, command));

      for (const name of NEEDED[command]) expect(message).toContain(name);
    },
  );

  test("requires only the variables that the plugin requires", () => {
    expect(() => checkEnvironment({ CNI_CONTAINERID: "c1" }, "ADD", ["CNI_CONTAINERID"])).not.toThrow();
    expect(thrownBy(() => checkEnvironment({}, "ADD", ["CNI_CONTAINERID"])).message).not.toContain("CNI_NETNS");
  });
});

describe("pluginDirectories()", () => {
  test.each([
    [undefined, []],
    ["", []],
    ["/a", ["/a"]],
    ["/a::/b:", ["/a", "/b"]],
  ])("splits %p", (path, expected) => {
    expect(pluginDirectories({ CNI_PATH: path })).toEqual(expected);
  });
});

describe("allowsOwnNetns()", () => {
  test.each([
    [undefined, false],
    ["", false],
    ["0", false],
    ["yes", false],
    ["1", true],
    ["true", true],
    ["TrUe", true],
  ])("CNI_NETNS_OVERRIDE %p: %p", (value, expected) => {
    expect(allowsOwnNetns({ CNI_NETNS_OVERRIDE: value })).toBe(expected);
  });
});
