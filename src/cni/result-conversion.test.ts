import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { addressFamily, type CniResult, EMPTY_RESULT } from "./result.ts";
import { decodePrevResult, decodeResult, encodeResult } from "./result-conversion.ts";
import { CNI_VERSIONS, type CniVersion, isAtLeast } from "./version.ts";

const FULL: CniResult = {
  interfaces: [
    { name: "eth0", mac: "aa:bb:cc:00:00:01", sandbox: "/run/netns/x", mtu: 1450, socketPath: "/s", pciId: "0:1" },
    { name: "host0", mac: "aa:bb:cc:00:00:02" },
  ],
  ips: [
    { address: "10.0.0.2/16", gateway: "10.0.0.1", interface: 0 },
    { address: "10.0.0.3/16", interface: 0 },
    { address: "fd00::2/64", interface: 0 },
  ],
  routes: [
    { destination: "0.0.0.0/0", gateway: "10.0.0.1", mtu: 1400, advmss: 1360, priority: 10, table: 0, scope: 0 },
    { destination: "::/0" },
  ],
  dns: { nameservers: ["10.0.0.10"], domain: "local", search: ["a.local"], options: ["ndots:5"] },
};

const DNS = { nameservers: ["10.0.0.10"], domain: "local", search: ["a.local"], options: ["ndots:5"] };
const PLAIN_LINKS = [
  { name: "eth0", mac: "aa:bb:cc:00:00:01", sandbox: "/run/netns/x" },
  { name: "host0", mac: "aa:bb:cc:00:00:02" },
];
const PLAIN_ROUTES = [{ dst: "0.0.0.0/0", gw: "10.0.0.1" }, { dst: "::/0" }];
const PLAIN_IPS = [
  { interface: 0, address: "10.0.0.2/16", gateway: "10.0.0.1" },
  { interface: 0, address: "10.0.0.3/16" },
  { interface: 0, address: "fd00::2/64" },
];
const VERSIONED_IPS = PLAIN_IPS.map((ip) => ({ version: ip.address.includes(":") ? "6" : "4", ...ip }));

const FAMILIES = {
  ip4: { ip: "10.0.0.2/16", gateway: "10.0.0.1", routes: [PLAIN_ROUTES[0]] },
  ip6: { ip: "fd00::2/64", routes: [PLAIN_ROUTES[1]] },
  dns: DNS,
};
const LISTS = { interfaces: PLAIN_LINKS, ips: VERSIONED_IPS, routes: PLAIN_ROUTES, dns: DNS };

const GOLDEN: Readonly<Record<CniVersion, object>> = {
  "0.1.0": FAMILIES,
  "0.2.0": FAMILIES,
  "0.3.0": LISTS,
  "0.3.1": LISTS,
  "0.4.0": LISTS,
  "1.0.0": { ...LISTS, ips: PLAIN_IPS },
  "1.1.0": {
    interfaces: [{ ...PLAIN_LINKS[0], mtu: 1450, socketPath: "/s", pciID: "0:1" }, PLAIN_LINKS[1]],
    ips: PLAIN_IPS,
    routes: [{ ...PLAIN_ROUTES[0], mtu: 1400, advmss: 1360, priority: 10, table: 0, scope: 0 }, PLAIN_ROUTES[1]],
    dns: DNS,
  },
};

/** As the reader of the JSON sees it. */
function wire(result: CniResult, version: CniVersion): unknown {
  return JSON.parse(JSON.stringify(encodeResult(result, version)));
}

describe("encodeResult()", () => {
  test.each([...CNI_VERSIONS])("encodes the whole result in the shape of %s", (version) => {
    expect(wire(FULL, version)).toStrictEqual({ cniVersion: version, ...GOLDEN[version] });
  });

  test.each(["0.1.0", "0.2.0"] as const)("refuses a result without any address at %s", (version) => {
    expect(thrownBy(() => encodeResult(EMPTY_RESULT, version)).kind).toBe("version-incompatible");
  });

  test.each(["0.3.0", "0.3.1", "0.4.0"] as const)("encodes an empty result at %s, with dns", (version) => {
    expect(wire(EMPTY_RESULT, version)).toStrictEqual({ cniVersion: version, dns: {} });
  });

  test.each(["1.0.0", "1.1.0"] as const)("encodes an empty result at %s, without dns", (version) => {
    expect(wire(EMPTY_RESULT, version)).toStrictEqual({ cniVersion: version });
  });

  test("drops routes of a family without address before 0.3.0", () => {
    const result = { ...EMPTY_RESULT, ips: [{ address: "fd00::2/64" }], routes: [{ destination: "0.0.0.0/0" }] };

    expect(wire(result, "0.2.0")).toStrictEqual({ cniVersion: "0.2.0", ip6: { ip: "fd00::2/64" }, dns: {} });
  });

  test("writes no empty strings", () => {
    const result = {
      ...EMPTY_RESULT,
      interfaces: [{ name: "eth0", mac: "", sandbox: "" }],
      ips: [{ address: "10.0.0.2/32", gateway: "" }],
    };

    expect(wire(result, "1.1.0")).toStrictEqual({
      cniVersion: "1.1.0",
      interfaces: [{ name: "eth0" }],
      ips: [{ address: "10.0.0.2/32" }],
    });
  });
});

describe("decodeResult()", () => {
  test.each([...CNI_VERSIONS])("reads the result of %s by its own version", (version) => {
    const other = version === "0.2.0" ? "1.1.0" : "0.2.0";

    expect(decodeResult(wire(FULL, version), other)).toEqual(expressibleIn(version, FULL));
  });

  test("treats null, empty strings and meaningless zeros as absent", () => {
    const value = {
      interfaces: [{ name: "eth0", mac: "", sandbox: null, mtu: 0 }],
      ips: [{ address: "10.0.0.2/24", gateway: "", interface: null }],
      routes: null,
      dns: null,
    };

    expect(decodeResult(value, "1.1.0")).toEqual({
      ...EMPTY_RESULT,
      interfaces: [{ name: "eth0" }],
      ips: [{ address: "10.0.0.2/24" }],
    });
  });

  test.each([
    ["null", null],
    ["a list", []],
    ["text", "x"],
    ["an unknown version", { cniVersion: "2.0.0" }],
    ["a version that is not a string", { cniVersion: 1 }],
    ["ips that are not a list", { ips: {} }],
    ["an address without prefix length", { ips: [{ address: "10.0.0.2" }] }],
    ["text that is not an address", { ips: [{ address: "x/24" }] }],
    ["an index that is not an integer", { ips: [{ address: "10.0.0.2/24", interface: 0.5 }] }],
    ["an interface without name", { interfaces: [{}] }],
    ["a route without destination", { routes: [{}] }],
    ["ip4 that is a string, before 0.3.0", { cniVersion: "0.2.0", ip4: "10.0.0.2" }],
  ])("refuses %s", (_, value) => {
    expect(thrownBy(() => decodeResult(value, "1.0.0")).kind).toBe("decode-failure");
  });

  test("names the path of a problem", () => {
    const value = { ips: [{ address: "10.0.0.2/24" }, { address: 1 }] };

    expect(thrownBy(() => decodeResult(value, "1.0.0")).message).toContain("ips[1].address");
  });
});

describe("decodePrevResult()", () => {
  test.each([...CNI_VERSIONS])("reads one in the config's version %s, with and without its own version", (version) => {
    const { cniVersion, ...bare } = encodeResult(FULL, version);

    for (const prevResult of [bare, { cniVersion, ...bare }]) {
      expect(decodePrevResult(JSON.parse(JSON.stringify({ prevResult })), version)).toEqual(
        expressibleIn(version, FULL),
      );
    }
  });

  test.each([
    ["0.3.0", "0.4.0"],
    ["1.0.0", "1.1.0"],
    ["0.1.0", "0.2.0"],
  ] as const)("reads one of %s in a config of %s: their shape is the same", (own, version) => {
    expect(decodePrevResult({ prevResult: wire(FULL, own) }, version)?.ips[0]?.address).toBe("10.0.0.2/16");
  });

  test.each([
    ["1.0.0", "0.4.0"],
    ["0.4.0", "1.0.0"],
    ["1.0.0", "0.1.0"],
    ["0.2.0", "0.3.0"],
  ] as const)("refuses one of %s in a config of %s", (own, version) => {
    expect(thrownBy(() => decodePrevResult({ prevResult: wire(FULL, own) }, version)).kind).toBe("config-invalid");
  });

  test.each([{}, { prevResult: null }])("finds none in %p", (config) => {
    expect(decodePrevResult(config, "1.0.0")).toBeUndefined();
  });
});

describe("conversion", () => {
  test("keeps of any result what the version can express", () => {
    fc.assert(
      fc.property(anyResult(), fc.constantFrom(...CNI_VERSIONS), (result, version) => {
        fc.pre(isAtLeast(version, "0.3.0") || result.ips.length > 0);
        expect(decodeResult(wire(result, version), version)).toEqual(expressibleIn(version, result));
      }),
    );
  });

  test("changes nothing the second time", () => {
    fc.assert(
      fc.property(anyResult(), fc.constantFrom(...CNI_VERSIONS), (result, version) => {
        fc.pre(isAtLeast(version, "0.3.0") || result.ips.length > 0);
        const once = wire(result, version);
        expect(wire(decodeResult(once, version), version)).toStrictEqual(once);
      }),
    );
  });
});

/** What is left of a result in a version: the same rule, written independently. */
function expressibleIn(version: CniVersion, result: CniResult): CniResult {
  if (version === "1.1.0") return result;
  const routes = result.routes.map(({ destination, gateway }) => ({ destination, gateway }));
  if (isAtLeast(version, "0.3.0")) {
    const interfaces = result.interfaces.map(({ name, mac, sandbox }) => ({ name, mac, sandbox }));
    return { ...result, interfaces, routes };
  }
  const families = ([4, 6] as const).filter((family) => result.ips.some((ip) => addressFamily(ip.address) === family));
  return {
    interfaces: [],
    ips: families.flatMap((family) => {
      const first = result.ips.find((ip) => addressFamily(ip.address) === family);
      return first === undefined ? [] : [{ address: first.address, gateway: first.gateway }];
    }),
    routes: families.flatMap((family) => routes.filter((route) => addressFamily(route.destination) === family)),
    dns: result.dns,
  };
}

function anyResult(): fc.Arbitrary<CniResult> {
  const text = fc.string({ minLength: 1 });
  const positive = fc.integer({ min: 1, max: 2 ** 32 - 1 });
  const natural = fc.nat();
  const address = fc.oneof(fc.ipV4(), fc.ipV6());
  const prefix = address.chain((ip) => fc.nat({ max: ip.includes(":") ? 128 : 32 }).map((length) => `${ip}/${length}`));
  const optional = { requiredKeys: [] };
  return fc.record({
    interfaces: fc.array(
      fc.record(
        { name: text, mac: text, sandbox: text, mtu: positive, socketPath: text, pciId: text },
        { requiredKeys: ["name"] },
      ),
    ),
    ips: fc.array(fc.record({ address: prefix, gateway: address, interface: natural }, { requiredKeys: ["address"] })),
    routes: fc.array(
      fc.record(
        {
          destination: prefix,
          gateway: address,
          mtu: positive,
          advmss: positive,
          priority: positive,
          table: natural,
          scope: natural,
        },
        { requiredKeys: ["destination"] },
      ),
    ),
    dns: fc.record({ domain: text }, optional).chain((domain) =>
      fc.record({ nameservers: fc.array(address), search: fc.array(text), options: fc.array(text) }).map((lists) => ({
        ...domain,
        ...lists,
      })),
    ),
  });
}
