/** Every option of the network config has a field of the Installation that sets it, or a reason why there is none. */
import { describe, expect, test } from "bun:test";
import { INSTALLATION_OPTIONS, optionPaths } from "../../scripts/docs/installation-options.ts";
import { isJsonObject, type JsonObject } from "../../src/cni/json.ts";
import { apiVersionOf, identity, OPERATOR_API } from "../../src/identity.ts";
import { formatProblem } from "../../src/model/problem.ts";
import { OPERATOR_KINDS } from "../../src/release/crds/installation/kinds.ts";
import { completeInstallation } from "../../src/release/installation/complete.ts";
import { mergeOverlay } from "../../src/release/installation/overlay.ts";
import { networkList } from "../../src/release/workloads/network-list.ts";

const FACTS = { version: "1.0.0", namespace: "system", pools: [], platformPodCidrs: [] };
const ROWS = Object.entries(INSTALLATION_OPTIONS).flatMap(([option, row]) =>
  "field" in row ? [{ option, ...row }] : [],
);

/** The network configuration list that the operator renders of the spec. */
function listOf(spec: object): JsonObject {
  const installation = { apiVersion: apiVersionOf(OPERATOR_API), kind: "Installation", metadata: { name: "default" } };
  const completed = completeInstallation({ default: { ...installation, spec } }, FACTS);
  if (!completed.ok) throw new Error(completed.problems.map(formatProblem).join("; "));
  return networkList(completed.installation, FACTS);
}

/** `portmap.snat` is in the entry of `portmap`; what does not begin with a chained plugin, in that of our own. */
function optionIn({ plugins }: JsonObject, option: string): unknown {
  const entries = Array.isArray(plugins) ? plugins.filter(isJsonObject) : [];
  const [first = "", ...rest] = option.split(".");
  const isChained = first === "portmap" || first === "bandwidth";
  const entry = entries.find(({ type }) => type === (isChained ? first : identity.product));
  return memberAt(entry, isChained ? rest : [first, ...rest]);
}

function memberAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((found, name) => (isJsonObject(found) ? found[name] : undefined), value);
}

function withMember(path: string, value: unknown): JsonObject {
  const [first = "", ...rest] = path.split(".");
  return { [first]: rest.length === 0 ? value : withMember(rest.join("."), value) };
}

describe("the table of options of the network config in docs/installation-resource.md", () => {
  test("has every option, and no other", () => {
    expect(Object.keys(INSTALLATION_OPTIONS).toSorted()).toEqual(optionPaths().toSorted());
  });

  test("names fields that the Installation has", () => {
    const { schema } = OPERATOR_KINDS.find(({ kind }) => kind === "Installation") ?? {};
    const isThere = (field: string) =>
      memberAt(schema, ["properties", "spec", ...field.split(".").flatMap((name) => ["properties", name])]) !==
      undefined;

    expect(ROWS.filter(({ field }) => !isThere(field)).map(({ field }) => field)).toEqual([]);
  });

  test.each(ROWS)("is carried out by the operator: $option by $field", ({ option, field, example }) => {
    const spec = mergeOverlay({ ...example.with }, withMember(field, example.value));
    const before = optionIn(listOf({}), option);

    expect(optionIn(listOf(spec), option)).toEqual(example.option as never);
    if (option !== "type") expect(before).not.toEqual(example.option as never);
  });
});
