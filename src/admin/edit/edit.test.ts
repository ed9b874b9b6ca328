import { beforeEach, describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION } from "../../identity.ts";
import { EXIT_FAILED, EXIT_OK } from "../main/command.ts";
import { conflictsOf, patchBetween } from "./merge-difference.ts";
import { mergePatch } from "./merge-patch.ts";

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  const pool = {
    apiVersion: API_VERSION,
    kind: "IPPool",
    metadata: { name: "blue", labels: { rack: "a" } },
    spec: { cidr: "10.0.0.0/24" },
  };
  await runInside(["apply", "-f", "-"], { store, stdin: JSON.stringify(pool) });
});

/** Each text that is opened gets the next change. */
async function edit(...changes: readonly ((text: string) => string | Promise<string>)[]) {
  const opened: string[] = [];
  const done = await runInside(["edit", "pool", "blue"], {
    store,
    edit(text) {
      opened.push(text);
      return changes[opened.length - 1]?.(text) ?? text;
    },
  });
  return { ...done, opened };
}

async function read(path: string): Promise<string> {
  return (await runInside(["get", "pool", "blue", "-o", `jsonpath={${path}}`], { store })).stdout;
}

function patch(value: object) {
  return runInside(["patch", "pool", "blue", "-p", JSON.stringify(value)], { store });
}

const DISABLED = `apiVersion: ${API_VERSION}
kind: IPPool
metadata: {name: blue, labels: {rack: a}}
spec: {cidr: 10.0.0.0/24, disabled: true}
`;

const disable = (text: string) => text.replace("disabled: false", "disabled: true");

describe("edit", () => {
  test("writes what was changed", async () => {
    const { code, stdout, stderr, opened } = await edit(disable);

    expect({ code, stdout, stderr }).toEqual({ code: EXIT_OK, stdout: "ippool/blue edited\n", stderr: "" });
    expect(opened[0]).toContain("# Edit ippool/blue");
    expect(await read(".spec.disabled")).toBe("true");
  });

  test.each([
    ["nothing", (text: string) => text],
    ["everything deleted", () => ""],
  ])("changes nothing if the text has %s changed", async (_, change) => {
    expect(await edit(change)).toMatchObject({
      code: EXIT_OK,
      stdout: "ippool/blue unchanged\n",
      stderr: "note: nothing was changed in the editor\n",
    });
  });

  test("keeps what someone else changed in the meantime", async () => {
    await edit(async (text) => {
      await patch({ spec: { natOutgoing: true }, metadata: { labels: { rack: null, disk: "ssd" } } });
      return disable(text);
    });

    expect(await read(".spec.disabled},{.spec.natOutgoing},{.metadata.labels")).toBe('true,true,{"disk":"ssd"}');
  });

  test("does not overwrite a change of the same field by someone else, and keeps the text", async () => {
    const { code, stderr } = await edit(async (text) => {
      await patch({ spec: { nodeSelector: "has(x)" } });
      return text.replace("nodeSelector: all()", "nodeSelector: has(y)");
    });

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("someone else has changed spec.nodeSelector too (the edited text is in /tmp/edited.yaml)");
    expect(await read(".spec.nodeSelector")).toBe("has(x)");
  });

  test.each([
    ["an invalid field", (text: string) => text.replace("blockSize: 26", "blockSize: 27"), "spec.blockSize"],
    ["an unknown field", (text: string) => text.replace("disabled:", "disabld:"), "spec.disabld"],
    ["broken YAML", (text: string) => text.replace("spec:", "spec: }"), "Cannot read the text"],
    ["another name", (text: string) => text.replace("name: blue", "name: red"), "the name cannot be changed"],
  ])("opens again after %s, with the error and the text", async (_, change, error) => {
    const { code, stdout, opened } = await edit(change, () => DISABLED);
    expect(opened[1]).toContain(error);
    expect(opened[1]?.replace(/^(#.*\n)+/, "")).toBe(change(opened[0] ?? "").replace(/^(#.*\n)+/, ""));
    expect([code, stdout]).toEqual([EXIT_OK, "ippool/blue edited\n"]);
    expect(await read(".spec.disabled")).toBe("true");
  });

  test("gives up if the error stays, and keeps the text", async () => {
    const { code, stderr, opened } = await edit((text) => text.replace("blockSize: 26", "blockSize: 27"));

    expect(code).toBe(EXIT_FAILED);
    expect(opened).toHaveLength(2);
    expect(stderr).toContain("the edited text is in /tmp/edited.yaml");
  });

  test("uses $EDITOR, then $VISUAL, then vi", async () => {
    const editors: string[] = [];
    const note = (text: string, editor: string) => {
      editors.push(editor);
      return text;
    };
    for (const env of [{ EDITOR: "ed", VISUAL: "v" }, { VISUAL: "v" }, {}]) {
      await runInside(["edit", "pool/blue"], { store, env, edit: note });
    }

    expect(editors).toEqual(["ed", "v", "vi"]);
  });

  test("fails for a resource that does not exist, without an editor", async () => {
    const { code, stderr } = await runInside(["edit", "pool", "bleu"], { store, edit: () => "opened" });

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain('did you mean "blue"?');
  });
});

describe("patchBetween()", () => {
  test.each([
    [
      { a: 1, b: { c: 2, d: [1] } },
      { a: 1, b: { c: 3, d: [1, 2] } },
    ],
    [{ a: 1, b: 2 }, { b: 2 }],
    [{}, { a: { b: {} } }],
    [{ a: "text" }, { a: { b: 1 } }],
    [{ a: { b: 1 } }, { a: [] }],
  ])("makes the second of the first: %j, %j", (before, after) => {
    expect(mergePatch(before, patchBetween(before, after))).toEqual(after);
  });

  test("is empty for equal values", () => {
    expect(patchBetween({ a: [1], b: null }, { a: [1] })).toEqual({});
  });
});

describe("conflictsOf()", () => {
  test.each([
    [{ a: 1 }, { a: 1 }, { a: 2 }, []],
    [{ a: 1 }, { a: 2 }, { a: 2 }, []],
    [{ a: 1 }, { a: 3 }, { a: 2 }, ["a"]],
    [{ a: { b: 1, c: 1 } }, { a: { b: 1, c: 2 } }, { a: { b: 2 } }, []],
    [{ a: { b: 1 } }, {}, { a: { b: 2 } }, ["a"]],
    [{}, { a: 1 }, { a: 2 }, ["a"]],
    [{ a: 1 }, {}, { a: null }, []],
  ])("from %j, now %j, patch %j", (original, current, change, expected) => {
    expect(conflictsOf(original, current, change)).toEqual(expected);
  });
});
