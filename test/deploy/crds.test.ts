/** The CRDs as text. What the API server makes of them: test/kube/crds.test.ts. */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { identity } from "../../src/identity.ts";
import { INTERNAL_KINDS, PUBLIC_KINDS } from "../../src/model/kinds.ts";
import { isObject } from "../../src/model/shape.ts";
import { CUSTOM_RESOURCES, ORCHESTRATOR_OBJECTS } from "../../src/release/crds/all-kinds.ts";
import { SELECTOR_PATTERN } from "../../src/release/crds/fields.ts";
import { OPERATOR_KINDS } from "../../src/release/crds/installation/kinds.ts";
import { parseSelector } from "../../src/selector/parse.ts";
import { renamedIdentity } from "../identity/other-name.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const DIRECTORY = join(import.meta.dir, "../../deploy/crds");

/** A directory of its own: the network works without the operator too. */
const FILES = [...new Glob("**/*.yaml").scanSync(DIRECTORY)];

const folder = temporaryDirectory("crds");
afterAll(() => folder.remove());

describe("the CRDs", () => {
  test("exist for every kind that is not an object of the orchestrator", () => {
    const kinds = [...PUBLIC_KINDS, ...INTERNAL_KINDS].map(({ kind }) => kind);

    expect([...CUSTOM_RESOURCES.map(({ row }) => row.kind), ...Object.keys(ORCHESTRATOR_OBJECTS)].sort()).toEqual(
      kinds.sort(),
    );
    expect(FILES.toSorted()).toEqual(
      [
        ...CUSTOM_RESOURCES.map(({ row }) => `${row.plural}.yaml`),
        ...OPERATOR_KINDS.map(({ plural }) => `operator/${plural}.yaml`),
      ].sort(),
    );
  });

  test.each(FILES)("%s: describes every field", (name) => {
    const definition: unknown = Bun.YAML.parse(readFileSync(join(DIRECTORY, name), "utf8"));

    expect(undescribed(schemaIn(definition), "")).toEqual([]);
  });

  test("have the names of the identity file, and no other", () => {
    const other = renamedIdentity(identity, "quillon");
    const file = join(folder.path, "quillon.json");
    const out = join(folder.path, "out");
    writeFileSync(file, JSON.stringify(other));
    const { exitCode, stderr } = Bun.spawnSync(["make", "--silent", "generate", `IDENTITY=${file}`, `OUT=${out}`]);
    expect({ exitCode, stderr: stderr.toString() }).toEqual({ exitCode: 0, stderr: "" });

    const own = readFileSync(join(DIRECTORY, "clusterinformations.yaml"), "utf8");
    const renamed = readFileSync(join(out, "deploy/crds/clusterinformations.yaml"), "utf8");
    expect(renamed).toBe(own.replaceAll("vendor", "quillon"));
    expect(renamed).toContain("group: quillon.org");
  });
});

describe("SELECTOR_PATTERN", () => {
  const matches = (text: string) => new RegExp(SELECTOR_PATTERN).test(`${text}&&`);

  test.each([
    "all()",
    " global( ) ",
    "has(zone)",
    "!has(app.kubernetes.io/name)",
    "zone=='a'",
    `zone != "it's"`,
    "zone in{'a' ,\"b\"}",
    "zone in {}",
    "zone not in { 'a' }",
    "zone notin {'a'}",
    "name starts with 'x' && name endswith 'y'",
    "in in {'in'}",
    "((a == 'x' || !(b contains ')('))) && !!all()",
    "a == '&&' || b == \"||\"",
  ])("matches the valid selector %p", (text) => {
    expect(parseSelector(text).ok).toBe(true);
    expect(matches(text)).toBe(true);
  });

  test.each([
    "zone = 'a'",
    "zone",
    "zone == a",
    "has()",
    "has(zone) &&",
    "&& has(zone)",
    "a == 'x' b == 'y'",
    "a in 'x'",
    "no(a)",
  ])("does not match %p, which is not a selector", (text) => {
    expect(parseSelector(text).ok).toBe(false);
    expect(matches(text)).toBe(false);
  });
});

function schemaIn(definition: unknown): unknown {
  let inner: unknown = definition;
  for (const name of ["spec", "versions", "0", "schema", "openAPIV3Schema"]) {
    inner = Reflect.get(Object(inner), name);
  }
  return inner;
}

/** Members of lists and maps are described by the field that contains them. */
function undescribed(schema: unknown, path: string): readonly string[] {
  if (!isObject(schema)) return [path];
  const { properties = {}, items, additionalProperties } = schema;
  const inner = [items, additionalProperties].filter(isObject);
  return [
    ...Object.entries(Object(properties)).flatMap(([name, member]) => undescribed(member, `${path}.${name}`)),
    ...inner.flatMap((member) => undescribed(member, `${path}[]`)),
    ...(schema["description"] === undefined && path !== ".metadata" && !path.endsWith("[]") ? [path] : []),
  ];
}
