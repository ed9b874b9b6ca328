import { describe, expect, test } from "bun:test";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { formatAddress } from "../ip/address.ts";
import { requestedAddresses } from "./requested-addresses.ts";

const requested = (config: object, ip?: string) =>
  requestedAddresses({ config: { ...config }, args: { ip } }).map(
    ({ address, place }) => `${formatAddress(address)} ${place}`,
  );

describe("requestedAddresses()", () => {
  test.each([
    ["nobody asks", {}, undefined, []],
    ["CNI_ARGS", {}, "10.0.0.9", ["10.0.0.9 IP of CNI_ARGS"]],
    ["an IPv4 address in IPv6 form", {}, "::ffff:10.0.0.9", ["10.0.0.9 IP of CNI_ARGS"]],
    ["the config's args", { args: { cni: { ips: ["fd00::9"] } } }, undefined, ["fd00::9 args.cni.ips[0]"]],
    [
      "the runtime, with and without a prefix length",
      { runtimeConfig: { ips: ["10.0.0.9/16", "fd00::9"] } },
      undefined,
      ["10.0.0.9 runtimeConfig.ips[0]", "fd00::9 runtimeConfig.ips[1]"],
    ],
    [
      "the same address in several places",
      { args: { cni: { ips: ["10.0.0.9"] } }, runtimeConfig: { ips: ["10.0.0.9", "fd00::9"] } },
      "10.0.0.9",
      ["10.0.0.9 IP of CNI_ARGS", "fd00::9 runtimeConfig.ips[1]"],
    ],
    ["nothing in an empty or absent list", { args: { cni: {} }, runtimeConfig: { ips: null } }, undefined, []],
  ] as const)("reads %s", (_, config, ip, wanted) => {
    expect(requested(config, ip)).toEqual([...wanted]);
  });

  test.each([
    ["IP of CNI_ARGS", {}, "10.0.0", "environment-invalid"],
    ['"runtimeConfig.ips[1]" is "x"', { runtimeConfig: { ips: ["10.0.0.1", "x"] } }, undefined, "config-invalid"],
    ['"runtimeConfig.ips" is "10.0.0.1"', { runtimeConfig: { ips: "10.0.0.1" } }, undefined, "config-invalid"],
    ['"args.cni.ips[0]" is 7', { args: { cni: { ips: [7] } } }, undefined, "config-invalid"],
  ] as const)("refuses %s", (named, config, ip, kind) => {
    const failure = thrownBy(() => requested(config, ip));

    expect(failure.kind).toBe(kind);
    expect(failure.message).toContain(named);
  });
});
