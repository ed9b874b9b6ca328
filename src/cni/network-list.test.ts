import { describe, expect, test } from "bun:test";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { decodeNetwork, networkProblems, requirePlugins, withPluginFiles } from "./network-list.ts";

const LIST = { cniVersion: "1.0.0", name: "net", plugins: [{ type: "main" }] };

describe("decodeNetwork()", () => {
  test("reads a list with its options and capabilities", () => {
    const list = decodeNetwork({
      cniVersion: "1.1.0",
      name: "net",
      disableCheck: true,
      disableGC: "true",
      plugins: [{ type: "main" }, { type: "portmap", capabilities: { portMappings: true, mac: false } }],
    });

    expect(list).toMatchObject({ name: "net", cniVersion: "1.1.0", disableCheck: true, disableGc: true });
    expect(list.plugins.map(({ type, capabilities }) => [type, capabilities])).toEqual([
      ["main", []],
      ["portmap", ["portMappings"]],
    ]);
  });

  test("reads a single config as a list of one", () => {
    const config = { cniVersion: "0.2.0", name: "net", type: "main", ipam: { type: "x" } };

    expect(decodeNetwork(config)).toMatchObject({ cniVersion: "0.2.0", plugins: [{ type: "main", config }] });
  });

  test.each([
    [true, true],
    [false, false],
    ["true", true],
    ["false", false],
    ["True", true],
    [null, false],
    [undefined, false],
  ])("reads loadOnlyInlinedPlugins, disableCheck and disableGC %p as %p", (value, expected) => {
    const config = { ...LIST, loadOnlyInlinedPlugins: value, disableCheck: value, disableGC: value };

    expect(decodeNetwork(config)).toMatchObject({
      loadOnlyInlinedPlugins: expected,
      disableCheck: expected,
      disableGc: expected,
    });
  });

  test.each([
    [{ cniVersion: "0.4.0" }, "0.4.0"],
    [{ cniVersion: undefined }, "0.1.0"],
    [{ cniVersion: "", cniVersions: ["0.4.0", "1.0.0"] }, "1.0.0"],
    [{ cniVersion: "1.1.0", cniVersions: ["0.4.0"] }, "1.1.0"],
    [{ cniVersion: "0.3.1", cniVersions: ["1.0.0", "7.0.0"] }, "1.0.0"],
  ])("chooses the highest version offered in %p", (versions, expected) => {
    const config = { ...LIST, ...versions };

    expect(decodeNetwork(config).cniVersion).toBe(expected as "1.0.0");
  });

  test.each([
    [
      "chaining below 0.3.0",
      { ...LIST, cniVersion: "0.2.0", plugins: [{ type: "a" }, { type: "b" }] },
      "config-invalid",
    ],
    ["chaining without a version", { name: "n", plugins: [{ type: "a" }, { type: "b" }] }, "config-invalid"],
    ["no name", { ...LIST, name: undefined }, "config-invalid"],
    ["a bad name", { ...LIST, name: "a/b" }, "config-invalid"],
    ["a name that is not a string", { ...LIST, name: 1 }, "decode-failure"],
    ["an empty list", { ...LIST, plugins: [] }, "config-invalid"],
    ["plugins that are not a list", { ...LIST, plugins: {} }, "decode-failure"],
    ["a plugin that is not an object", { ...LIST, plugins: ["main"] }, "decode-failure"],
    ["a plugin without type", { ...LIST, plugins: [{}] }, "config-invalid"],
    ["a type that is not a string", { ...LIST, plugins: [{ type: 1 }] }, "decode-failure"],
    ["a single config without type", { name: "net" }, "config-invalid"],
    ["capabilities that are not an object", { ...LIST, plugins: [{ type: "a", capabilities: [] }] }, "decode-failure"],
    ["a boolean that is neither true nor false", { ...LIST, disableCheck: "yes" }, "decode-failure"],
    ["a version that is not a string", { ...LIST, cniVersion: 1 }, "decode-failure"],
    ["versions that are not a list", { ...LIST, cniVersions: "1.0.0" }, "decode-failure"],
    ["only unknown versions", { ...LIST, cniVersion: "9.9.9" }, "version-incompatible"],
    ["inlined plugins only, and none", { name: "net", loadOnlyInlinedPlugins: true }, "config-invalid"],
  ])("refuses %s", (_, config, kind) => {
    expect(thrownBy(() => decodeNetwork(config)).kind).toBe(kind as "config-invalid");
  });
});

describe("networkProblems()", () => {
  test("returns every reason with its path, and none for a valid list", () => {
    const problems = networkProblems({ cniVersion: 1, plugins: [{ type: "a/b" }, { type: "b", capabilities: 1 }] });

    expect(problems.map(({ path, kind }) => [path, kind])).toEqual([
      [["name"], "config-invalid"],
      [["cniVersion"], "decode-failure"],
      [["plugins", 0, "type"], "config-invalid"],
      [["plugins", 1, "capabilities"], "decode-failure"],
    ]);
    expect(networkProblems(LIST)).toEqual([]);
  });

  test("are all in the error when the network is refused", () => {
    const { kind, message } = thrownBy(() => decodeNetwork({ name: "a b", cniVersion: "1.0.0", type: 5 }));

    expect(kind).toBe("config-invalid");
    expect(message).toContain('"name"');
    expect(message).toContain('"type"');
  });
});

describe("withPluginFiles()", () => {
  test("appends the files in their order", () => {
    const list = withPluginFiles(decodeNetwork(LIST), [{ type: "b" }, { type: "a" }]);

    expect(list.plugins.map(({ type }) => type)).toEqual(["main", "b", "a"]);
  });

  test("ignores the files if only inlined plugins are allowed", () => {
    const list = decodeNetwork({ ...LIST, loadOnlyInlinedPlugins: "true" });

    expect(withPluginFiles(list, [{ type: "b" }])).toBe(list);
  });

  test("refuses files that make a chain in a version without chaining", () => {
    const list = decodeNetwork({ ...LIST, cniVersion: "0.2.0" });

    expect(thrownBy(() => withPluginFiles(list, [{ type: "b" }])).kind).toBe("config-invalid");
  });
});

describe("requirePlugins()", () => {
  test("refuses a list without plugins", () => {
    const list = decodeNetwork({ name: "net", cniVersion: "1.1.0", loadOnlyInlinedPlugins: false });

    expect(thrownBy(() => requirePlugins(list)).kind).toBe("config-invalid");
    expect(requirePlugins(withPluginFiles(list, [{ type: "a" }])).plugins).toHaveLength(1);
  });
});
