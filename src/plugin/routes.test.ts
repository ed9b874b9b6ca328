import { describe, expect, test } from "bun:test";
import { address } from "../../test/support/ip.ts";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { chooseRoutes, wantedRoute } from "./routes.ts";

const both = [address("10.0.0.5"), address("fd00::5")];
const V4 = "169.254.1.1";
const V6 = "fe80::ecee:eeff:feee:eeee";

describe("chooseRoutes()", () => {
  test("adds a default route for each family that has an address", () => {
    const routes = chooseRoutes({ addresses: both, given: [], includeDefaultRoutes: false });

    expect(routes).toEqual([
      { destination: "0.0.0.0/0", gateway: V4 },
      { destination: "::/0", gateway: V6 },
    ]);
    expect(chooseRoutes({ addresses: both.slice(1), given: [], includeDefaultRoutes: false })).toHaveLength(1);
  });

  test("uses the IPAM plugin's routes instead, with our own gateway, and keeps their other fields", () => {
    const given = [{ destination: "10.9.8.7/8", gateway: "10.0.0.1", mtu: 1400, table: 0, scope: 0 }];

    expect(chooseRoutes({ addresses: both, given, includeDefaultRoutes: false })).toEqual([
      { destination: "10.0.0.0/8", gateway: V4, mtu: 1400, table: 0, scope: 0 },
    ]);
  });

  test("adds the default routes if the config says so, none twice", () => {
    const given = [{ destination: "0.0.0.0/0" }, { destination: "fd01::/64" }];
    const routes = chooseRoutes({ addresses: both, given, includeDefaultRoutes: true });

    expect(routes.map((route) => route.destination)).toEqual(["0.0.0.0/0", "fd01::/64", "::/0"]);
  });

  test("leaves out a route of a family without an address", () => {
    const given = [{ destination: "fd01::/64" }];

    expect(chooseRoutes({ addresses: both.slice(0, 1), given, includeDefaultRoutes: false })).toEqual([]);
  });

  test("refuses a destination that is not a network", () => {
    const given = [{ destination: "10.0.0.0/99" }];

    expect(thrownBy(() => chooseRoutes({ addresses: both, given, includeDefaultRoutes: false })).kind).toBe(
      "delegate-failed",
    );
  });
});

describe("wantedRoute()", () => {
  test("contains everything but the scope, which follows from the gateway", () => {
    const route = { destination: "0.0.0.0/0", mtu: 1400, advmss: 1360, priority: 3, table: 100, scope: 0 };

    expect(wantedRoute(route)).toEqual({
      destination: { network: { family: 4, value: 0n }, length: 0 },
      mtu: 1400,
      advertisedSegment: 1360,
      priority: 3,
      table: 100,
    });
  });
});
