import { describe, expect, test } from "bun:test";
import { address, prefix } from "../../test/support/ipam.ts";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { choosePools, type Pool, type PoolCriteria, poolHolding } from "./pools.ts";

const pool = (name: string, cidr: string, more: Partial<Pool> = {}): Pool => ({
  name,
  cidr: prefix(cidr),
  blockLength: cidr.includes(":") ? 122 : 26,
  disabled: false,
  createdAt: "",
  natOutgoing: false,
  announcing: { tunnel: undefined, isExported: true },
  allowedUses: ["Workload", "Tunnel"],
  nodeSelector: "all()",
  selects: () => true,
  key: `/pools/${name}`,
  revision: "1",
  ...more,
});
type Labels = Readonly<Record<string, string>>;
const POOLS = [
  pool("blue", "10.1.0.0/16"),
  pool("elsewhere", "10.2.0.0/16", { nodeSelector: "rack == '2'", selects: (labels) => labels["rack"] === "2" }),
  pool("off", "10.3.0.0/16", { disabled: true }),
  pool("six", "fd00::/64"),
  pool("tunnels", "10.4.0.0/16", { allowedUses: ["Tunnel"] }),
];
const criteria = (more: Partial<PoolCriteria> = {}): PoolCriteria => ({
  family: 4,
  intendedUse: "Workload",
  node: "n",
  labels: {},
  ...more,
});
const names = (more: Partial<PoolCriteria>) => choosePools(POOLS, criteria(more)).map((each) => each.name);

describe("choosePools()", () => {
  test("tells which nodes the pools are for when none selects this one", () => {
    const far = [pool("far", "10.9.0.0/16", { nodeSelector: "rack == '2'", selects: () => false })];

    expect(thrownBy(() => choosePools(far, criteria())).details).toContain("far 10.9.0.0/16 (of nodes rack == '2')");
  });

  test.each([
    [
      "no pool of the family",
      [pool("six", "fd00::/64")],
      /create one: echo '\{.*kind: IPPool.*10\.66\.0\.0\/16.*\}' \| \S+ create -f -$/,
    ],
    [
      "only disabled ones",
      [pool("off", "10.3.0.0/16", { disabled: true })],
      /enable one: \S+ patch ippool off -p '.*'$/,
    ],
    [
      "only pools of other nodes",
      [pool("far", "10.9.0.0/16", { nodeSelector: "a == 'b'", selects: () => false })],
      /label node "n"/,
    ],
  ])("tells how to get a pool if there is %s", (_, pools, told) => {
    expect(thrownBy(() => choosePools(pools, criteria())).details).toMatch(told);
  });

  test("says that no pool is of a family, and what asks for it", () => {
    const familyPlace = 'annotation "x" of pod "a/b"';
    const { kind, message, details } = thrownBy(() =>
      choosePools([pool("blue", "10.1.0.0/16")], criteria({ family: 6, familyPlace })),
    );

    expect([kind, message]).toEqual([
      "addresses-exhausted",
      `Cannot assign an IPv6 address (${familyPlace}): there is no IPv6 pool`,
    ]);
    expect(details).toContain("create one: echo");
  });

  test.each([
    ["every enabled pool of the family that selects the node and allows the use", {}, ["blue"]],
    ["pools by their selector", { labels: { rack: "2" } }, ["blue", "elsewhere"]],
    ["pools of the other family for the other family", { family: 6 }, ["six"]],
    ["pools by the use they allow", { intendedUse: "Tunnel" }, ["blue", "tunnels"]],
    ["pools asked for by name, though they do not select the node", { asked: ["elsewhere"] }, ["elsewhere"]],
    ["pools in the order asked, by CIDR or name", { asked: ["10.2.0.0/16", "blue"] }, ["elsewhere", "blue"]],
    ["a pool asked for twice once", { asked: ["blue", "10.1.0.0/16"] }, ["blue"]],
    ["as if nothing was asked where the list is empty", { asked: [] }, ["blue"]],
  ] as const)("chooses %s", (_, more, expected) => {
    expect(names(more)).toEqual([...expected]);
  });

  test.each([
    ["does not exist", "green"],
    ["is a part of a pool", "10.1.0.0/24"],
    ["is disabled", "off"],
    ["is disabled, by CIDR", "10.3.0.0/16"],
    ["is of the other family", "six"],
  ])("refuses a pool that %s, and lists those that exist", (_, asked) => {
    const error = thrownBy(() => names({ asked: ["blue", asked] }));

    expect(error.kind).toBe("pool-unknown");
    expect(error.details).toContain("elsewhere 10.2.0.0/16");
    expect(error.details).toContain("off 10.3.0.0/16 (disabled)");
  });

  test("says where a pool is requested, and of which pool it is only a part", () => {
    const error = thrownBy(() => names({ asked: ["10.1.0.0/24"], place: 'annotation "x" of pod "a/b"' }));

    expect(error.message).toContain('"10.1.0.0/24" (annotation "x" of pod "a/b")');
    expect(error.message).toContain('only a part of pool "blue"');
  });

  test.each([
    ["no pool selects the node", { family: 4 as const, intendedUse: "Nothing" }],
    ["the pool asked for does not allow the use", { asked: ["tunnels"] }],
  ])("has nothing to offer where %s", (_, more) => {
    expect(thrownBy(() => names(more)).kind).toBe("addresses-exhausted");
  });
});

describe("choosePools() with pools of some namespaces", () => {
  const namespaces = { selector: "tenant == 'a'", selects: (labels: Labels) => labels["tenant"] === "a" };
  const TENANT = [pool("common", "10.1.0.0/16", { disabled: true }), pool("tenant", "10.9.0.0/16", { namespaces })];
  const chosen = (namespace: PoolCriteria["namespace"], pools = TENANT) =>
    choosePools(pools, criteria({ namespace })).map((each) => each.name);
  const ofTenant = { name: "shop", labels: { tenant: "a" } };

  test("chooses one whose selector matches the labels of the namespace, beside those without a selector", () => {
    expect(chosen(ofTenant)).toEqual(["tenant"]);
    const both = [pool("open", "10.1.0.0/16"), ...TENANT];
    expect(chosen(ofTenant, both)).toEqual(["open", "tenant"]);
    expect(chosen({ name: "other", labels: {} }, both)).toEqual(["open"]);
    expect(chosen(undefined, both)).toEqual(["open"]);
  });

  test("needs both selectors to match", () => {
    const far = [pool("far", "10.9.0.0/16", { namespaces, nodeSelector: "rack == '2'", selects: () => false })];

    expect(thrownBy(() => chosen(ofTenant, far)).message).toContain('no enabled IPv4 pool selects node "n"');
  });

  test("counts every one as usable if the question is whether some pod could use it", () => {
    expect(chosen("any")).toEqual(["tenant"]);
  });

  test("gives one that is requested to any namespace, and to a container without a pod", () => {
    for (const namespace of [undefined, { name: "other", labels: {} }, { name: "unknown" }]) {
      expect(names({ asked: ["blue"], namespace })).toEqual(["blue"]);
      expect(choosePools(TENANT, criteria({ asked: ["tenant"], namespace }))).toHaveLength(1);
    }
  });

  test.each([
    [
      "another namespace",
      { name: "other", labels: {} },
      `its namespace selector tenant == 'a' does not select namespace "other"`,
      'label namespace "other"',
    ],
    ["a namespace whose labels are not known", { name: "other" }, "are not known", "let the plugin read namespaces"],
    [
      "a container without a pod",
      undefined,
      "selects no container without a pod",
      "create a pool without a namespaceSelector",
    ],
  ])("tells %s why no pool serves it, and how to get one", (_, namespace, why, how) => {
    const { kind, message, details } = thrownBy(() => chosen(namespace));

    expect([kind, message]).toEqual(["addresses-exhausted", expect.stringContaining(`pool "tenant": `)]);
    expect(message).toContain(why);
    expect(details).toContain("tenant 10.9.0.0/16 (of namespaces tenant == 'a')");
    expect(details).toContain(how);
  });
});

describe("poolHolding()", () => {
  test("finds the enabled pool around an address", () => {
    expect(poolHolding(POOLS, address("10.2.3.4")).name).toBe("elsewhere");
  });

  test("lists the pools where there is none", () => {
    const error = thrownBy(() => poolHolding(POOLS, address("10.3.0.1")));

    expect(error.kind).toBe("address-outside-pools");
    expect(error.details).toContain("blue 10.1.0.0/16");
  });
});
