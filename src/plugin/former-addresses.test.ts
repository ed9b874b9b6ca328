import { expect, test } from "bun:test";
import { address } from "../../test/support/ipam.ts";
import { withoutThoseOfOthers } from "./former-addresses.ts";

test("withoutThoseOfOthers() leaves out what is routed to the link of a container, and nothing else", () => {
  const routed = new Map([
    ["10.0.0.1", "net/c2/eth0"],
    ["10.0.0.2", "uplink"],
    ["10.0.0.3", ""],
  ]);
  const addresses = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"].map(address);

  expect(withoutThoseOfOthers(addresses, { routed })).toEqual(addresses.slice(1));
});
