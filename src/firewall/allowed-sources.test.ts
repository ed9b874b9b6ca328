import { describe, expect, test } from "bun:test";
import { prefix } from "../../test/support/ip.ts";
import { formatRange } from "../ip/range.ts";
import { type AllowedSource, changesForLinks, familiesOf, sourcesOfLink } from "./allowed-sources.ts";
import { allowedChanges, sourceOfElement } from "./guard-rules.ts";

const link = (linkIndex: number, ...prefixes: readonly string[]) => ({
  linkIndex,
  linkName: `vend${linkIndex}`,
  prefixes: prefixes.map(prefix),
});
const texts = (sources: readonly AllowedSource[]) =>
  sources.map(({ linkIndex, range }) => `${linkIndex} ${formatRange(range)}`);

describe("sourcesOfLink()", () => {
  test("merges prefixes that overlap or touch, by family", () => {
    const sources = sourcesOfLink(link(7, "10.0.1.0/24", "::/0", "10.0.0.0/24", "10.0.1.128/25", "192.0.2.1/32"));

    expect(texts(sources)).toEqual([
      "7 10.0.0.0-10.0.1.255",
      "7 192.0.2.1-192.0.2.1",
      "7 ::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    ]);
    expect([familiesOf(7, sources), familiesOf(8, sources)]).toEqual([[4, 6], []]);
  });
});

describe("changesForLinks()", () => {
  test("makes these links exact, and leaves others alone", () => {
    const present = [
      ...sourcesOfLink(link(7, "10.0.0.0/24", "fd00::/64")),
      ...sourcesOfLink(link(8, "10.0.0.0/24")),
      ...sourcesOfLink(link(9, "10.9.0.0/24")),
    ];
    const { removed, added } = changesForLinks(present, [link(7, "10.0.0.0/16", "fd00::/64"), link(8)]);

    expect(texts(removed)).toEqual(["7 10.0.0.0-10.0.0.255", "8 10.0.0.0-10.0.0.255"]);
    expect(texts(added)).toEqual(["7 10.0.0.0-10.0.255.255"]);
  });
});

describe("the elements of the guard table", () => {
  test("are read as they are written, and removed before others are added", () => {
    const [old, now] = [sourcesOfLink(link(300, "10.0.0.0/24")), sourcesOfLink(link(300, "0.0.0.0/0", "fd00::/64"))];
    const changes = allowedChanges({ removed: old, added: now });
    const elements = changes.flatMap((change) => ("elements" in change ? change.elements : []));

    expect(changes.map(({ kind }) => kind)).toEqual(["delete-elements", "add-elements", "add-elements"]);
    expect(texts(elements.flatMap((element) => sourceOfElement(element) ?? []))).toEqual(texts([...old, ...now]));
    expect(sourceOfElement({ key: new Uint8Array(5) })).toBeUndefined();
  });
});
