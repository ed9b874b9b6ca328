import { describe, expect, test } from "bun:test";
import { API_VERSION } from "../../identity.ts";
import { decodeManifests, type GivenResource, parseManifest } from "../manifest/manifest.ts";
import { problemsAmong } from "./validate.ts";

function pools(...given: readonly (readonly [name: string, cidr: string])[]): readonly GivenResource[] {
  const documents = given.map(([name, cidr]) => ({
    apiVersion: API_VERSION,
    kind: "IPPool",
    metadata: { name },
    spec: { cidr },
  }));
  return decodeManifests([{ place: "stdin", text: JSON.stringify(documents) }]);
}

describe("problemsAmong()", () => {
  test("reports a resource that is given twice, and pools that overlap", () => {
    const all = pools(["a", "10.0.0.0/16"], ["b", "10.1.0.0/16"], ["b", "10.1.0.0/16"], ["c", "10.0.1.0/24"]);
    const found = problemsAmong(all);
    const texts = all.map((each) => found.get(each)?.join("; ") ?? "");

    expect(texts[0]).toContain('overlaps pool "c"');
    expect(texts[1]).toBe("the same resource is given more than once");
    expect(texts[2]).toBe("the same resource is given more than once");
    expect(texts[3]).toContain('overlaps pool "a"');
  });

  test("reports what apply refuses: a second ContainerLabels for a container, but not for one of another node", () => {
    const labels = (name: string, node: string) => ({
      ...{ apiVersion: API_VERSION, kind: "ContainerLabels", metadata: { name } },
      spec: { node, container: "web", labels: { role: name } },
    });
    const documents = [labels("a", "n1"), labels("b", "n1"), labels("c", "n2")];
    const all = decodeManifests([{ place: "stdin", text: JSON.stringify(documents) }]);
    const texts = [...problemsAmong(all).values()].map((problems) => problems.join("; "));

    expect(texts).toEqual([
      expect.stringContaining('spec.container: "web" has its labels from ContainerLabels "b" already'),
      expect.stringContaining('spec.container: "web" has its labels from ContainerLabels "a" already'),
      "",
    ]);
  });

  test.each([
    ["that do not overlap", (index: number) => `10.${index >> 8}.${index & 255}.0/24`],
    ["that all overlap", () => "10.0.0.0/16"],
  ])("looks at each pool a few times, however many there are %s", (_, cidrOf) => {
    expect(looksFor(2_000, cidrOf)).toBeLessThan(looksFor(200, cidrOf) * 11);
  });

  /** How often the kind, the name and the content of the resources are read. */
  function looksFor(count: number, cidrOf: (index: number) => string): number {
    const names = Array.from({ length: count }, (_, index) => [`p${index}`, cidrOf(index)] as const);
    let looks = 0;
    const all = pools(...names).map((each) => {
      const resource = counting(each.resource, () => (looks += 1));
      return counting({ ...each, resource }, () => (looks += 1));
    });
    problemsAmong(all);
    return looks;
  }

  function counting<T extends object>(value: T, look: () => void): T {
    return new Proxy(value, {
      get(target, name, receiver) {
        look();
        return Reflect.get(target, name, receiver);
      },
    });
  }
});

describe("parseManifest()", () => {
  test("finds the line of a field whose name contains dots or brackets", () => {
    const lines = [
      "items:",
      "- metadata:",
      "    labels:",
      "      a: x",
      "      a.b/c: x",
      "      d[0]: x",
      "kind: AnyList",
    ];
    const [member] = parseManifest({ place: "f", text: lines.join("\n") });
    const placeOf = (path: string) => (member?.ok ? member.placeOf(path) : "");

    expect(["a", "a.b/c", "d[0]", "e.f"].map((name) => placeOf(`metadata.labels.${name}`))).toEqual(
      [4, 5, 6, 3].map((line) => `f:${line} (items[0])`),
    );
  });
});
