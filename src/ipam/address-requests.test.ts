import { describe, expect, test } from "bun:test";
import { address } from "../../test/support/ip.ts";
import { decode } from "../../test/support/network-config.ts";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { identity } from "../identity.ts";
import { addressRequestsOf } from "./address-requests.ts";

const plan = (ipam: object, ...requested: readonly string[]) =>
  addressRequestsOf({
    ipam: decode({ ipam: { type: identity.ipamType, ...ipam } }).ipam,
    requested: requested.map((text, index) => ({ address: address(text), place: `place ${index}` })),
  });
const given = (text: string, pools?: readonly string[]) => ({ kind: "given" as const, address: address(text), pools });
const automatic = (family: 4 | 6, pools?: readonly string[]) => ({ kind: "automatic" as const, family, pools });

describe("addressRequestsOf()", () => {
  test.each([
    ["IPv4 when nothing is said", {}, [{ kind: "automatic", family: 4, pools: undefined }]],
    [
      "both families, each with its pools",
      { assign_ipv6: "true", ipv4_pools: ["blue"], ipv6_pools: ["fd00::/64"] },
      [
        { kind: "automatic", family: 4, pools: ["blue"] },
        { kind: "automatic", family: 6, pools: ["fd00::/64"] },
      ],
    ],
    ["IPv6 alone", { assign_ipv4: "false", assign_ipv6: "true" }, [{ kind: "automatic", family: 6, pools: undefined }]],
    ["any pool when the list is empty", { ipv4_pools: [] }, [{ kind: "automatic", family: 4, pools: undefined }]],
  ] as const)("asks for %s", (_, ipam, addressRequests) => {
    expect(plan(ipam)).toEqual([...addressRequests]);
  });

  test.each([
    [
      "one family, and the other as the config says",
      { assign_ipv6: "true" },
      ["10.0.0.9"],
      [given("10.0.0.9"), automatic(6)],
    ],
    ["IPv6, and IPv4 as the config says", {}, ["fd00::9"], [automatic(4), given("fd00::9")]],
    ["one family, if the config assigns no other", { assign_ipv4: "false" }, ["fd00::9"], [given("fd00::9")]],
    ["both families", {}, ["fd00::9", "10.0.0.9"], [given("10.0.0.9"), given("fd00::9")]],
    [
      "both families, each within the pools of the config",
      { assign_ipv6: "true", ipv4_pools: ["blue"], ipv6_pools: ["blue6"] },
      ["10.0.0.9", "fd00::9"],
      [given("10.0.0.9", ["blue"]), given("fd00::9", ["blue6"])],
    ],
  ] as const)("asks for requested addresses: %s", (_, ipam, requested, addressRequests) => {
    expect(plan(ipam, ...requested)).toEqual([...addressRequests]);
  });

  test("asks for addresses of a list alone, of the families that are asked for", () => {
    const place = "annotation";
    const { ipam } = decode({ ipam: { type: identity.ipamType, assign_ipv6: "true", ipv4_pools: ["blue"] } });
    const requested = [{ address: address("10.0.0.9"), place: "runtime" }];
    const annotated = { pools: { 4: { pools: ["red"], place } }, list: { name: "web", place } };
    const families = { value: [6] as const, place };

    expect(addressRequestsOf({ ipam, requested, annotated })).toEqual([{ kind: "listed", list: "web", place }]);
    expect(addressRequestsOf({ ipam, requested: [], annotated: { ...annotated, families } })).toEqual([
      { kind: "listed", list: "web", place, families },
    ]);
  });

  describe("with families in an annotation", () => {
    const place = "annotation";
    const planned = (value: readonly (4 | 6)[], ipam: object, ...requested: readonly string[]) =>
      addressRequestsOf({
        ipam: decode({ ipam: { type: identity.ipamType, ...ipam } }).ipam,
        requested: requested.map((text) => ({ address: address(text), place: "runtime" })),
        annotated: { pools: { 6: { pools: ["red6"], place } }, families: { value, place } },
      });
    const DUAL = { assign_ipv6: "true", ipv4_pools: ["blue"] };
    const four = { kind: "automatic" as const, family: 4 as const, familyPlace: place };
    const six = {
      kind: "automatic" as const,
      family: 6 as const,
      familyPlace: place,
      pools: ["red6"],
      poolsPlace: place,
    };

    test.each([
      ["IPv6 although the config assigns IPv4 alone", [6], {}, [six]],
      ["both although the config assigns IPv4 alone", [4, 6], {}, [{ ...four, pools: undefined }, six]],
      ["IPv4 although the config assigns both", [4], DUAL, [{ ...four, pools: ["blue"] }]],
      ["both although the config assigns none", [4, 6], { assign_ipv4: "false" }, [{ ...four, pools: undefined }, six]],
    ] as const)("asks for %s", (_, families, ipam, expected) => {
      expect(planned(families, ipam)).toEqual([...expected]);
    });

    test("asks for what the runtime requests only of these families", () => {
      expect(planned([4], DUAL, "10.0.0.9", "fd00::9")).toEqual([given("10.0.0.9", ["blue"])]);
      expect(planned([6], DUAL, "10.0.0.9")).toEqual([six]);
    });

    test("asks for annotated addresses alone", () => {
      const addresses = [{ address: address("10.0.0.9"), place }];
      const annotated = { addresses, pools: {}, families: { value: [4, 6] as const, place } };
      const { ipam } = decode({ ipam: { type: identity.ipamType } });

      expect(addressRequestsOf({ ipam, requested: [], annotated })).toEqual([
        { kind: "given", address: address("10.0.0.9"), place },
      ]);
    });
  });

  test("prefers pools in annotations over those of the config, each family on its own", () => {
    const sources = {
      ipam: decode({
        ipam: { type: identity.ipamType, assign_ipv6: "true", ipv4_pools: ["blue"], ipv6_pools: ["blue6"] },
      }).ipam,
      annotated: { pools: { 4: { pools: ["red"], place: "annotation" } } },
    };

    expect(addressRequestsOf({ ...sources, requested: [] })).toEqual([
      { ...automatic(4, ["red"]), poolsPlace: "annotation" },
      automatic(6, ["blue6"]),
    ]);
    const requested = [{ address: address("10.0.0.9"), place: "IP of CNI_ARGS" }];
    expect(addressRequestsOf({ ...sources, requested })).toEqual([
      { ...given("10.0.0.9", ["red"]), poolsPlace: "annotation" },
      automatic(6, ["blue6"]),
    ]);
  });

  test.each([[["10.0.0.9"]], [["fd00::9"]], [["10.0.0.9", "fd00::9"]]])(
    "asks for addresses in annotations and for nothing else: %p",
    (texts) => {
      const addressRequests = addressRequestsOf({
        ipam: decode({ ipam: { type: identity.ipamType, assign_ipv6: "true", ipv4_pools: ["blue"] } }).ipam,
        requested: [{ address: address("10.0.0.8"), place: "IP of CNI_ARGS" }],
        annotated: {
          addresses: texts.map((text) => ({ address: address(text), place: "annotation" })),
          pools: { 4: { pools: ["red"], place: "annotation" } },
        },
      });

      expect(addressRequests).toEqual(texts.map((text) => ({ ...given(text), place: "annotation" })));
    },
  );

  test("refuses two addresses of one family, and says where each is requested", () => {
    const failure = thrownBy(() => plan({}, "10.0.0.9", "fd00::9", "10.0.0.10"));

    expect(failure.kind).toBe("field-unsupported");
    expect(failure.message).toContain('"10.0.0.9" (place 0) and "10.0.0.10" (place 2)');
  });

  test("refuses a config that asks for none", () => {
    expect(thrownBy(() => plan({ assign_ipv4: "false" })).kind).toBe("config-invalid");
  });
});
