import { describe, expect, test } from "bun:test";
import { address } from "../../test/support/ip.ts";
import { decode } from "../../test/support/network-config.ts";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { identity } from "../identity.ts";
import { wishesOf } from "./wishes.ts";

const plan = (ipam: object, ip?: string) =>
  wishesOf({ ipam: decode({ ipam: { type: identity.ipamType, ...ipam } }).ipam, args: { ip } });

describe("wishesOf()", () => {
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
  ] as const)("wishes for %s", (_, ipam, wishes) => {
    expect(plan(ipam)).toEqual([...wishes]);
  });

  test("wishes for the address of CNI_ARGS and for no other", () => {
    expect(plan({ assign_ipv6: "true" }, "10.0.0.9")).toEqual([{ kind: "given", address: address("10.0.0.9") }]);
    expect(plan({ assign_ipv4: "false" }, "fd00::9")).toEqual([{ kind: "given", address: address("fd00::9") }]);
    expect(plan({}, "::ffff:10.0.0.9")).toEqual([{ kind: "given", address: address("10.0.0.9") }]);
  });

  test("refuses what is no address, and a config that wishes for none", () => {
    expect(thrownBy(() => plan({}, "10.0.0")).kind).toBe("environment-invalid");
    expect(thrownBy(() => plan({ assign_ipv4: "false" })).kind).toBe("config-invalid");
  });
});
