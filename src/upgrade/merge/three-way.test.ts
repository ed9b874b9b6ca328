import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isSame } from "./canonical-json.ts";
import { mergeThreeWay, UNKNOWN_BASE } from "./three-way.ts";

const merged = (base: unknown, live: unknown, release: unknown) => mergeThreeWay({ base, live, release }, "theirs");

/** The spec of a pod with one container, whose members are given. */
const pod = (container: object, more: object = {}) => ({
  spec: { containers: [{ name: "node", ...container }], ...more },
});
const env = (...variables: readonly (readonly [string, string])[]) => ({
  env: variables.map(([name, value]) => ({ name, value })),
});

describe("mergeThreeWay()", () => {
  test.each<[string, object, object, object, object]>([
    [
      "an added variable, and one that the release has added",
      pod(env(["A", "1"])),
      pod(env(["A", "1"], ["MINE", "x"])),
      pod(env(["A", "1"], ["THEIRS", "y"])),
      pod(env(["A", "1"], ["MINE", "x"], ["THEIRS", "y"])),
    ],
    [
      "a changed variable, and one that the release has removed",
      pod(env(["A", "1"], ["OLD", "o"])),
      pod(env(["A", "2"], ["OLD", "o"])),
      pod(env(["A", "1"])),
      pod(env(["A", "2"])),
    ],
    [
      "a removed variable",
      pod(env(["A", "1"], ["B", "2"])),
      pod(env(["B", "2"])),
      pod(env(["A", "1"], ["B", "3"])),
      pod(env(["B", "3"])),
    ],
    [
      "resources of a container whose image the release changes",
      pod({ image: "v1" }),
      pod({ image: "v1", resources: { limits: { memory: "1Gi" } } }),
      pod({ image: "v2" }),
      pod({ image: "v2", resources: { limits: { memory: "1Gi" } } }),
    ],
    [
      "tolerations as a whole",
      pod({}, { tolerations: [{ operator: "Exists" }] }),
      pod({}, { tolerations: [{ key: "mine" }] }),
      pod({ image: "v2" }, { tolerations: [{ operator: "Exists" }] }),
      pod({ image: "v2" }, { tolerations: [{ key: "mine" }] }),
    ],
    [
      "mounts by their path, ports by number and protocol",
      pod({ volumeMounts: [{ mountPath: "/a", name: "x" }], ports: [{ containerPort: 1 }] }),
      pod({
        volumeMounts: [{ mountPath: "/a", name: "mine" }],
        ports: [{ containerPort: 1 }, { containerPort: 2, protocol: "UDP" }],
      }),
      pod({
        volumeMounts: [
          { mountPath: "/a", name: "x" },
          { mountPath: "/b", name: "y" },
        ],
        ports: [{ containerPort: 1, name: "p" }],
      }),
      pod({
        volumeMounts: [
          { mountPath: "/a", name: "mine" },
          { mountPath: "/b", name: "y" },
        ],
        ports: [
          { containerPort: 1, name: "p" },
          { containerPort: 2, protocol: "UDP" },
        ],
      }),
    ],
    [
      "rules that were added to a role",
      { rules: [{ verbs: ["get"] }] },
      { rules: [{ verbs: ["get"] }, { verbs: ["mine"] }] },
      { rules: [{ verbs: ["get", "list"] }] },
      { rules: [{ verbs: ["mine"] }, { verbs: ["get", "list"] }] },
    ],
  ])("keeps %s", (_, base, live, release, expected) => {
    const { value, conflicts } = merged(base, live, release);

    expect(value).toEqual(expected);
    expect(conflicts).toEqual([]);
  });

  test("lists what both have changed, with all three values, and takes the one that is asked for", () => {
    const versions = {
      base: pod(env(["A", "1"])),
      live: pod({ ...env(["A", "2"]), resources: { cpu: 1 } }),
      release: pod(env(["A", "3"])),
    };
    const conflict = {
      path: "spec.containers[node].env[A]",
      base: { name: "A", value: "1" },
      live: { name: "A", value: "2" },
      release: { name: "A", value: "3" },
    };

    expect(mergeThreeWay(versions, "mine")).toEqual({
      value: pod({ ...env(["A", "2"]), resources: { cpu: 1 } }),
      conflicts: [conflict],
    });
    expect(mergeThreeWay(versions, "theirs")).toEqual({
      value: pod({ ...env(["A", "3"]), resources: { cpu: 1 } }),
      conflicts: [conflict],
    });
  });

  test("a removal against a change is a conflict", () => {
    expect(merged({ a: 1 }, {}, { a: 2 }).conflicts).toEqual([{ path: "a", base: 1, release: 2 }]);
    expect(merged({ a: 1 }, { a: 2 }, {}).conflicts).toEqual([{ path: "a", base: 1, live: 2 }]);
  });

  test("never leaves both the value of a variable and its source", () => {
    const [base, live] = [pod(env(["A", "1"])), pod(env(["A", "2"]))];
    const release = pod({ env: [{ name: "A", valueFrom: { fieldRef: {} } }] });

    expect(merged(base, live, release).value).toEqual(release);
    expect(merged(base, base, release)).toEqual({ value: release, conflicts: [] });
  });

  test("without a base every difference is asked, and what is the same is not", () => {
    const { conflicts } = merged(
      UNKNOWN_BASE,
      pod({ image: "v1", ...env(["A", "1"], ["B", "2"]) }),
      pod({ image: "v2", ...env(["A", "1"], ["C", "3"]) }),
    );

    expect(conflicts.map(({ path }) => path)).toEqual([
      "spec.containers[node].image",
      "spec.containers[node].env[B]",
      "spec.containers[node].env[C]",
    ]);
  });

  test("keeps the user's order of containers", () => {
    const list = (...names: readonly string[]) => ({ initContainers: names.map((name) => ({ name })) });

    expect(merged(list("a", "b"), list("b", "a"), list("a", "b", "c")).value).toEqual(list("b", "c", "a"));
    expect(merged(list("a", "b"), list("mine", "a", "b"), list("b", "a")).value).toEqual(list("mine", "b", "a"));
  });

  test("two items of one key are not merged one by one", () => {
    const list = (...types: readonly string[]) => ({ plugins: types.map((type) => ({ type })) });

    expect(merged(list("tuning"), list("tuning", "tuning"), list("tuning", "b")).conflicts).toHaveLength(1);
  });
});

describe("mergeThreeWay() of JSON in a ConfigMap", () => {
  const list = (mtu: string, ...others: readonly string[]) =>
    `{"name": "k8s-pod-network", "cniVersion": "0.3.1", "plugins": [\n` +
    [`{"type": "own", "mtu": ${mtu}, "ipam": {"type": "own-ipam"}}`, ...others].join(",\n") +
    `]}`;
  const portmap = `{"type": "portmap", "snat": true, "capabilities": {"portMappings": true}}`;
  const newPortmap = `{"type": "portmap", "snat": true, "backend": "nftables"}`;
  const bandwidth = `{"type": "bandwidth", "capabilities": {"bandwidth": true}}`;
  const tuning = `{"type": "tuning", "sysctl": {}}`;
  const configMap = (config: string) => ({ data: { config } });
  const of = (base: string, live: string, release: string) => {
    const { value, conflicts } = merged(configMap(base), configMap(live), configMap(release));
    return { config: (value as ReturnType<typeof configMap>).data.config, conflicts };
  };

  test("keeps placeholders without quotes, and the user's edits", () => {
    const base = list("__CNI_MTU__", portmap);
    const live = base.replace("own-ipam", "host-local");
    const { config, conflicts } = of(base, live, list("__CNI_MTU__", portmap, bandwidth));

    expect(conflicts).toEqual([]);
    expect(config).toContain('"mtu": __CNI_MTU__');
    expect(config).toContain('"type": "host-local"');
    expect(config).toContain('"type": "bandwidth"');
  });

  test.each([
    ["portmap", list("0", bandwidth)],
    ["bandwidth", list("0", portmap)],
    ["portmap", list("0")],
  ])("a removed section %s stays removed, although the release has changed it", (type, live) => {
    const { config, conflicts } = of(list("0", portmap, bandwidth), live, list("0", newPortmap, bandwidth));

    expect(conflicts).toEqual([]);
    expect(config).not.toContain(type);
  });

  test("a plugin that was added stays in its place", () => {
    const { config } = of(
      list("0", portmap, bandwidth),
      list("0", portmap, tuning, bandwidth),
      list("1", newPortmap, bandwidth),
    );
    const types = JSON.parse(config).plugins.map(({ type }: { type: string }) => type);

    expect(types).toEqual(["own", "portmap", "tuning", "bandwidth"]);
  });

  test("names the place of a conflict inside the text", () => {
    const { conflicts } = of(list("__CNI_MTU__"), list("1400"), list("1450"));

    expect(conflicts.map(({ path }) => path)).toEqual(["data.config.plugins[own].mtu"]);
  });

  test("does not print again what it does not change, and does not read text that is not JSON", () => {
    const text = `{ "a":1 }`;

    expect(of(text, text, `{ "a":   1, "b": 2 }`).config).toBe(`{ "a":   1, "b": 2 }`);
    expect(of(`{"a": 1}`, `{"a": 1, "mine": {}}`, `{"a": 1}`).config).toBe(`{"a": 1, "mine": {}}`);
    expect(of("{a", "{b", "{c").conflicts.map(({ path }) => path)).toEqual(["data.config"]);
  });
});

describe("mergeThreeWay(), for any objects", () => {
  const names = fc.constantFrom("a", "b", "c", "d");
  const scalar = fc.constantFrom<unknown>(0, 1, "x", "y", true);
  const variables = fc
    .uniqueArray(fc.record({ name: names, value: fc.constantFrom("0", "1") }), {
      selector: ({ name }) => name,
      maxLength: 4,
    })
    .map((env) => ({ env }));
  const objects = fc
    .tuple(
      fc.dictionary(names, fc.oneof(scalar, fc.dictionary(names, scalar), fc.array(scalar, { maxLength: 3 }))),
      variables,
    )
    .map(([members, more]) => ({ ...members, ...more }));

  test("no edit gives the release; no change of the release gives the live object", () => {
    fc.assert(
      fc.property(objects, objects, (base, other) => {
        expect(merged(base, base, other)).toEqual({ value: other, conflicts: [] });
        expect(merged(base, other, base)).toEqual({ value: other, conflicts: [] });
        expect(merged(base, other, other)).toEqual({ value: other, conflicts: [] });
      }),
    );
  });

  test("edits of other fields than the release's are all kept, and so are the release's changes", () => {
    const fields = { mine: objects, theirs: objects };
    fc.assert(
      fc.property(fc.record(fields), objects, objects, (base, mine, theirs) => {
        const result = merged(base, { ...base, mine }, { ...base, theirs });

        expect(result.conflicts).toEqual([]);
        expect(isSame(result.value, { mine, theirs })).toBe(true);
      }),
    );
  });

  test("the winner decides only conflicts, and without one both results are the same", () => {
    fc.assert(
      fc.property(objects, objects, objects, (base, live, release) => {
        const [mine, theirs] = [
          mergeThreeWay({ base, live, release }, "mine"),
          mergeThreeWay({ base, live, release }, "theirs"),
        ];

        expect(mine.conflicts).toEqual(theirs.conflicts);
        if (mine.conflicts.length === 0) expect(isSame(mine.value, theirs.value)).toBe(true);
        for (const conflict of mine.conflicts) expect(isSame(conflict.live, conflict.release)).toBe(false);
      }),
    );
  });

  test("merging the result again changes nothing", () => {
    fc.assert(
      fc.property(
        objects,
        objects,
        objects,
        fc.constantFrom("mine" as const, "theirs" as const),
        (base, live, release, winner) => {
          const { value } = mergeThreeWay({ base, live, release }, winner);

          expect(isSame(mergeThreeWay({ base: release, live: value, release }, winner).value, value)).toBe(true);
        },
      ),
    );
  });
});
