import { describe, expect, test } from "bun:test";
import { addressFromBytes, formatAddress, parseAddress } from "../../ip/address.ts";
import { parsePrefix } from "../../ip/prefix.ts";
import type { SetReference } from "../effective-rule.ts";
import { setName } from "../table/names.ts";
import { TableBuilder } from "../table/table-builder.ts";
import type { Entity } from "./entity.ts";
import { MemberSets } from "./member-sets.ts";

const APP: SetReference = { kind: "selected", selector: "has(app)" };

function entity(...addresses: readonly string[]): Entity {
  return {
    labels: { app: "a" },
    parents: [],
    addresses: addresses.flatMap((text) => parseAddress(text) ?? []),
    prefixes: [],
    ports: [],
    weight: { addresses: addresses.length, ports: 0, named: new Map() },
  };
}

const network = (text: string): Entity => {
  const prefix = parsePrefix(text);
  return { ...entity(), prefixes: prefix === undefined ? [] : [prefix] };
};

function memberSets() {
  const table = new TableBuilder();
  const rendered: SetReference[] = [];
  const sets = new MemberSets(table, { prefixesChanged: (reference) => void rendered.push(reference) });
  const members = (name: string) =>
    table.sets.has(name)
      ? Array.from(table.sets.get(name)?.elements.values() ?? [], ({ key, interval }) => {
          const address = addressFromBytes(key);
          return `${address === undefined ? key.toHex() : formatAddress(address)}${interval === undefined ? "" : ` ${interval}`}`;
        })
      : undefined;
  return { table, sets, rendered, members };
}

describe("MemberSets", () => {
  test("a set has the addresses of both families of what is selected, before and after it is retained", () => {
    const { sets, members } = memberSets();
    sets.putEntity("one", entity("10.0.0.1", "fd00::1"));
    sets.retain(APP);
    sets.putEntity("two", entity("10.0.0.2"));

    expect(members(setName(APP, 4))).toEqual(["10.0.0.1", "10.0.0.2"]);
    expect(members(setName(APP, 6))).toEqual(["fd00::1"]);
  });

  test("an address stays until the last of its endpoints is gone", () => {
    const { sets, members } = memberSets();
    sets.retain(APP);
    for (const name of ["one", "two", "three"]) sets.putEntity(name, entity("10.0.0.1"));
    sets.deleteEntity("one");
    sets.putEntity("two", entity("10.0.0.2"));
    expect(members(setName(APP, 4))).toEqual(["10.0.0.1", "10.0.0.2"]);
    sets.deleteEntity("three");
    expect(members(setName(APP, 4))).toEqual(["10.0.0.2"]);
  });

  test("an endpoint that repeats an address holds it once", () => {
    const { sets, members } = memberSets();
    sets.retain(APP);
    sets.putEntity("one", entity("10.0.0.1", "10.0.0.1"));
    sets.deleteEntity("one");
    expect(members(setName(APP, 4))).toEqual([]);
  });

  test("a set exists as long as one of its users", () => {
    const { sets, members } = memberSets();
    sets.retain(APP);
    sets.retain(APP);
    sets.release(APP);
    expect(members(setName(APP, 4))).toEqual([]);
    sets.release(APP);
    expect(members(setName(APP, 4))).toBeUndefined();
  });

  test("networks have a set of their own, as merged ranges, only while there are any", () => {
    const { sets, members, rendered } = memberSets();
    sets.retain(APP);
    sets.putEntity("one", network("10.0.0.0/25"));
    sets.putEntity("two", network("10.0.0.128/25"));
    sets.flushRanges();

    expect(sets.hasPrefixes(APP)).toBe(true);
    expect(members(setName(APP, 4, "prefixes"))).toEqual(["10.0.0.0", "10.0.1.0 end"]);

    sets.deleteEntity("one");
    sets.deleteEntity("two");
    sets.flushRanges();
    expect(sets.hasPrefixes(APP)).toBe(false);
    expect(members(setName(APP, 4, "prefixes"))).toBeUndefined();
    expect(rendered).toEqual([APP, APP]);
  });

  test("a named port has address, protocol and port of the endpoints that declare it", () => {
    const { sets, table } = memberSets();
    const web = { kind: "named port", selector: "has(app)", protocol: 6, names: ["web"] } as const;
    sets.retain(web);
    sets.putEntity("one", { ...entity("10.0.0.1"), ports: [{ name: "web", protocol: 6, port: 80 }] });
    sets.putEntity("two", { ...entity("10.0.0.2"), ports: [{ name: "web", protocol: 17, port: 80 }] });

    const keys = Array.from(table.sets.get(setName(web, 4))?.elements.values() ?? [], ({ key }) => key.toHex());
    expect(keys).toEqual(["0a000001" + "06000000" + "00500000"]);
  });

  test("a service has the addresses behind it, with ports if it is a destination", () => {
    const { sets, table, members } = memberSets();
    const service = { kind: "service", namespace: "red", name: "web" } as const;
    const address = parseAddress("10.0.0.1");
    if (address === undefined) throw new RangeError("not an address");
    sets.retain({ ...service, withPorts: true });
    sets.retain({ ...service, withPorts: false });
    sets.putService("red", "web", [
      {
        address,
        ports: [
          { protocol: 6, port: 80 },
          { protocol: 17, port: 53 },
        ],
      },
    ]);

    expect(members(setName({ ...service, withPorts: false }, 4))).toEqual(["10.0.0.1"]);
    expect(table.sets.get(setName({ ...service, withPorts: true }, 4))?.elements.size).toBe(2);

    sets.putService("red", "web", []);
    expect(table.sets.get(setName({ ...service, withPorts: true }, 4))?.elements.size).toBe(0);
  });
});
