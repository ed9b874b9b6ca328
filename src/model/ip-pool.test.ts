import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { API_VERSION } from "../identity.ts";
import { formatPrefix } from "../ip/prefix.ts";
import { checkPoolOverlap, checkPoolOverlaps, checkPoolUpdate, type IPPool, ipPool, poolPrefix } from "./ip-pool.ts";
import { formatProblem } from "./problem.ts";

const pool = (spec: object, more: object = {}) => ({
  apiVersion: API_VERSION,
  kind: "IPPool",
  metadata: { name: "blue" },
  spec,
  ...more,
});

function decoded(spec: object, name = "blue"): IPPool {
  const result = ipPool.decode(pool(spec, { metadata: { name } }));
  if (!result.ok) throw new Error(result.problems.map(formatProblem).join("\n"));
  return result.value;
}

/** The paths at which the document is refused. */
function refusals(document: unknown): readonly string[] {
  const result = ipPool.decode(document);
  return result.ok ? [] : result.problems.map((problem) => problem.path);
}

describe("ipPool.decode()", () => {
  test("fills in defaults for absent fields", () => {
    expect(decoded({ cidr: "10.0.0.0/16" }).spec).toEqual({
      cidr: "10.0.0.0/16",
      ipipMode: "Never",
      vxlanMode: "Never",
      natOutgoing: false,
      nodeSelector: "all()",
      blockSize: 26,
      disabled: false,
      disableBGPExport: false,
      allowedUses: ["Workload", "Tunnel"],
    });
    expect(decoded({ cidr: "FD00::/48", nodeSelector: "", allowedUses: [] }).spec).toMatchObject({
      cidr: "fd00::/48",
      blockSize: 122,
      nodeSelector: "all()",
      allowedUses: ["Workload", "Tunnel"],
    });
  });

  test("keeps a namespaceSelector, takes an empty one for none, and refuses one that is not a selector", () => {
    const cidr = "10.0.0.0/16";

    expect(decoded({ cidr, namespaceSelector: "tenant == 'a'" }).spec.namespaceSelector).toBe("tenant == 'a'");
    expect(decoded({ cidr, namespaceSelector: " " }).spec).not.toHaveProperty("namespaceSelector");
    expect(refusals(pool({ cidr, namespaceSelector: "tenant =" }))).toEqual(["spec.namespaceSelector"]);
  });

  test.each([
    ["10.0.0.0/25", 26],
    ["10.0.0.0/28", 28],
    ["10.0.0.1/32", 32],
    ["fd00::/126", 126],
  ])("a pool %s is divided into blocks of /%d, none larger than the pool", (small, size) => {
    expect(decoded({ cidr: small }).spec.blockSize).toBe(size);
  });

  test("keeps the given values", () => {
    const spec = {
      cidr: "10.0.0.0/16",
      ipipMode: "CrossSubnet" as const,
      natOutgoing: true,
      nodeSelector: "rack == '1'",
      blockSize: 28,
      disabled: true,
      disableBGPExport: true,
      allowedUses: ["Tunnel" as const],
    };

    expect(decoded(spec).spec).toEqual({ ...spec, vxlanMode: "Never" });
    expect(formatPrefix(poolPrefix(decoded(spec)))).toBe("10.0.0.0/16");
  });

  const cidr = "10.0.0.0/16";
  const table: [string, unknown, string[]][] = [
    ["no spec", { apiVersion: API_VERSION, kind: "IPPool", metadata: { name: "a" } }, ["spec"]],
    ["no object", 5, [""]],
    ["no CIDR", pool({}), ["spec.cidr"]],
    ["text that is no CIDR", pool({ cidr: "ten" }), ["spec.cidr"]],
    ["a lone address", pool({ cidr: "10.0.0.1" }), ["spec.cidr"]],
    ["host bits", pool({ cidr: "10.0.0.1/16" }), ["spec.cidr"]],
    ["an IPv4-mapped IPv6 range", pool({ cidr: "::ffff:10.0.0.0/112" }), ["spec.cidr"]],
    ["a link-local range", pool({ cidr: "169.254.1.0/24" }), ["spec.cidr"]],
    ["a multicast range", pool({ cidr: "ff00::/64" }), ["spec.cidr"]],
    ["a block size too large for IPv4", pool({ cidr, blockSize: 19 }), ["spec.blockSize"]],
    ["a block size too small for IPv4", pool({ cidr, blockSize: 33 }), ["spec.blockSize"]],
    ["a block size too large for IPv6", pool({ cidr: "fd00::/64", blockSize: 115 }), ["spec.blockSize"]],
    ["a fractional block size", pool({ cidr, blockSize: 26.5 }), ["spec.blockSize"]],
    ["a block larger than the pool", pool({ cidr: "10.0.0.0/28", blockSize: 26 }), ["spec.blockSize"]],
    ["IPIP on IPv6", pool({ cidr: "fd00::/64", ipipMode: "Always" }), ["spec.ipipMode"]],
    ["IPIP and VXLAN", pool({ cidr, ipipMode: "Always", vxlanMode: "CrossSubnet" }), ["spec.ipipMode"]],
    ["an unknown mode", pool({ cidr, vxlanMode: "Sometimes" }), ["spec.vxlanMode"]],
    ["an unknown use", pool({ cidr, allowedUses: ["Workload", "Lunch"] }), ["spec.allowedUses[1]"]],
    ["a bad selector", pool({ cidr, nodeSelector: "rack == 1" }), ["spec.nodeSelector"]],
    ["text for a boolean", pool({ cidr, natOutgoing: "true" }), ["spec.natOutgoing"]],
    ["an unknown field", pool({ cidr, natOutgoign: true }), ["spec.natOutgoign"]],
    ["an unknown field outside the spec", pool({ cidr }, { sepc: {} }), ["sepc"]],
    [
      "a member that would change what the object is",
      pool(JSON.parse(`{"cidr":"${cidr}","__proto__":{}}`)),
      ["spec.__proto__"],
    ],
    ["a bad name", pool({ cidr }, { metadata: { name: "Blue_1" } }), ["metadata.name"]],
    ["a name too long", pool({ cidr }, { metadata: { name: "a".repeat(254) } }), ["metadata.name"]],
    ["no name", pool({ cidr }, { metadata: {} }), ["metadata.name"]],
    ["a namespace", pool({ cidr }, { metadata: { name: "a", namespace: "b" } }), ["metadata.namespace"]],
    ["another kind", pool({ cidr }, { kind: "Node" }), ["kind"]],
    ["another API version", pool({ cidr }, { apiVersion: "v1" }), ["apiVersion"]],
    ["two problems at once", pool({ cidr: "ten", extra: 1 }), ["spec.extra", "spec.cidr"]],
  ];
  test.each(table)("refuses %s", (_, document, paths) => {
    expect(refusals(document)).toEqual(paths);
  });

  const messages: [object, string][] = [
    [{ cidr: "10.0.0.1/16" }, 'spec.cidr: "10.0.0.1/16" has host bits; use "10.0.0.0/16"'],
    [
      { cidr: "10.0.0.1" },
      'spec.cidr: "10.0.0.1" is not a CIDR; use address and prefix length, for example "10.0.0.1/32"',
    ],
    [
      { cidr: "::ffff:10.0.0.0/112" },
      'spec.cidr: "::ffff:10.0.0.0/112" is an IPv4-mapped IPv6 network; use "10.0.0.0/16"',
    ],
    [{ cidr, natOutgoign: true }, 'spec.natOutgoign: is not a known field; did you mean "natOutgoing"?'],
    [{ cidr, blockSize: 8 }, "spec.blockSize: 8 is out of range for IPv4; use 20 to 32"],
    [{ cidr, ipipMode: "always" }, 'spec.ipipMode: "always" is not allowed; use "Never", "Always", "CrossSubnet"'],
    [
      { cidr, nodeSelector: "rack == 1" },
      'spec.nodeSelector: "rack == 1" is not a valid selector: position 8: expected a string in quotes, found "1"',
    ],
  ];
  test.each(messages)("reports what to do about %j", (spec, message) => {
    const result = ipPool.decode(pool(spec));

    expect(result.ok ? [] : result.problems.map(formatProblem)).toEqual([message]);
  });
});

describe("ipPool.read()", () => {
  test("fills in defaults in old data and ignores fields of other releases", () => {
    const stored = JSON.stringify(pool({ cidr, assignmentMode: "Automatic", disabled: null }));

    expect(ipPool.read(stored, "key").spec).toEqual(decoded({ cidr }).spec);
  });

  test("reads what write() writes, without the resource version", () => {
    const blue = decoded({ cidr });
    const text = ipPool.write({ ...blue, metadata: { ...blue.metadata, uid: "u", resourceVersion: "7" } });

    expect(ipPool.read(text, "key")).toEqual({ ...blue, metadata: { ...blue.metadata, uid: "u" } });
    expect(text).not.toContain("resourceVersion");
  });

  test.each(["", "{}", JSON.stringify(pool({ cidr: "ten" }))])("refuses %p and reports the key", (text) => {
    expect(() => ipPool.read(text, "/the/key")).toThrow("/the/key");
  });
});

const cidr = "10.0.0.0/16";

describe("checkPoolOverlap()", () => {
  test("reports every overlapping pool, except itself", () => {
    const others = [
      decoded({ cidr: "10.0.0.0/16" }, "blue"),
      decoded({ cidr: "10.0.128.0/17" }, "inner"),
      decoded({ cidr: "10.0.0.0/8" }, "outer"),
      decoded({ cidr: "10.1.0.0/16" }, "beside"),
      decoded({ cidr: "fd00::/48" }, "ipv6"),
    ];
    const problems = checkPoolOverlap(decoded({ cidr }), others);

    expect(problems.map((problem) => problem.message.match(/pool "(\w+)"/)?.[1])).toEqual(["inner", "outer"]);
  });
});

describe("checkPoolOverlaps()", () => {
  test("reports for each pool what checkPoolOverlap() reports, in the same order, the first three and a count", () => {
    const cidrs = fc.constantFrom(
      ...["10.0.0.0/16", "10.0.0.0/17", "10.0.128.0/17", "10.0.0.0/8", "10.1.0.0/16", "10.0.0.0/24", "10.0.1.0/24"],
      ...["fd00::/48", "fd00::/64", "fd00:0:1::/48"],
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(cidrs, fc.constantFrom("a", "b", "c", "d", "e")), { maxLength: 12 }), (given) => {
        const pools = given.map(([cidr, name]) => decoded({ cidr }, name));
        const found = checkPoolOverlaps(pools);
        for (const pool of pools) {
          const each = checkPoolOverlap(pool, pools);
          const [more, ...others] = (found.get(pool) ?? []).slice(3);

          expect(found.get(pool)?.slice(0, 3)).toEqual([...each.slice(0, 3)]);
          expect(more?.message.match(/^overlaps (\d+) more/)?.[1]).toBe(
            each.length > 3 ? `${each.length - 3}` : undefined,
          );
          expect(others).toEqual([]);
        }
      }),
    );
  });

  test("reports a few problems of each of many equal pools", () => {
    const pools = Array.from({ length: 500 }, (_, index) => decoded({ cidr }, `pool-${index}`));
    const problems = checkPoolOverlaps(pools).get(pools[250] ?? decoded({ cidr }));

    expect(problems?.map(({ message }) => message)).toEqual([
      ...["pool-0", "pool-1", "pool-2"].map(
        (name) => `overlaps pool "${name}" (${cidr}); use a CIDR that does not overlap it`,
      ),
      "overlaps 496 more pools; use a CIDR that does not overlap them",
    ]);
  });
});

describe("checkPoolUpdate()", () => {
  test("refuses changes of CIDR and block size, and allows others", () => {
    const before = decoded({ cidr });

    expect(checkPoolUpdate(before, decoded({ cidr, disabled: true, natOutgoing: true }))).toEqual([]);
    expect(
      checkPoolUpdate(before, decoded({ cidr: "10.1.0.0/16", blockSize: 27 })).map((problem) => problem.path),
    ).toEqual(["spec.cidr", "spec.blockSize"]);
  });
});
