import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { addressBits, type Family } from "../../ip/address.ts";
import { recordElement } from "./elements.ts";
import { isSameContainer, isSameNetwork, ownerOf } from "./port-owner.ts";
import { type PortRecord, recordOf } from "./port-records.ts";

const owner = ownerOf("net", { containerId: "c", ifname: "eth0" });

const records = fc.constantFrom<Family>(4, 6).chain((family): fc.Arbitrary<PortRecord> => {
  const address = fc.bigInt(0n, (1n << BigInt(addressBits(family))) - 1n).map((value) => ({ family, value }));
  const port = fc.integer({ min: 1, max: 65535 });
  const claim = fc.record({
    family: fc.constant(family),
    protocol: fc.constantFrom(6, 17, 132),
    hostAddress: address,
    hostPort: port,
    podAddress: address,
    podPort: port,
  });
  const length = fc.integer({ min: 0, max: addressBits(family) });
  const hidden = fc.record({ family: fc.constant(family), source: address, length, podAddress: address });
  return fc.oneof(
    claim.map((each): PortRecord => ({ kind: "port", claim: each })),
    claim.map((each): PortRecord => ({ kind: "port", claim: { ...each, isLoopbackLeft: true } })),
    hidden.map((each): PortRecord => ({ kind: "source", masqueraded: each })),
  );
});

describe("recordOf()", () => {
  test("reads what recordElement() wrote", () => {
    fc.assert(
      fc.property(records, fc.nat(1000), (record, index) => {
        const { family } = record.kind === "port" ? record.claim : record.masqueraded;
        expect(recordOf(family, recordElement(owner, index, record, "netns"))).toEqual(record);
      }),
    );
  });

  test("reads nothing from what others wrote", () => {
    expect(recordOf(4, { key: new Uint8Array(20) })).toBeUndefined();
    expect(recordOf(6, { key: new Uint8Array(20), data: new Uint8Array(20) })).toBeUndefined();
  });
});

describe("ownerOf()", () => {
  test("tells networks, containers and interfaces apart", () => {
    const id = (network: string, containerId: string, ifname: string) => ownerOf(network, { containerId, ifname }).id;
    expect(id("n", "c", "eth0")).toEqual(id("n", "c", "eth0"));
    expect(isSameNetwork(id("n", "c", "eth0"), id("n", "d", "eth1"))).toBe(true);
    expect(isSameNetwork(id("n", "c", "eth0"), id("m", "c", "eth0"))).toBe(false);
    expect(isSameContainer(id("n", "c", "eth0"), id("m", "c", "eth1"))).toBe(true);
    expect(isSameContainer(id("n", "c", "eth0"), id("n", "d", "eth0"))).toBe(false);
    expect(id("n", "c", "eth0")).not.toEqual(id("n", "c", "eth1"));
  });

  test("stays what it was: elements of one version are removed by the next", () => {
    expect(owner.id.toHex()).toBe("7ecc02cd60abe96a3244b14791d8104e");
  });
});
