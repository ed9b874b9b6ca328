import { describe, expect, test } from "bun:test";
import { matcherOf } from "../../../flows/flow-query.ts";
import { isPartner, nodesOf, partnerQuery } from "./flow-partner.ts";
import { sampleFlow } from "./sample-flow.ts";

const onDestination = sampleFlow();
const onSource = sampleFlow({ id: "node-1/9", node: "node-1", verdict: "allowed", start: 999_900, end: 1_000_100 });

describe("isPartner()", () => {
  test("is the record of the other node about the same connection", () => {
    expect(isPartner(onDestination, onSource)).toBe(true);
    expect(isPartner(onDestination, onDestination)).toBe(false);
    expect(isPartner(onDestination, { ...onSource, protocol: 17 })).toBe(false);
    expect(isPartner(onDestination, { ...onSource, start: 2_000_000, end: 2_000_000 })).toBe(false);
  });

  test("compares what the destination sees: behind a Service and a masquerade too", () => {
    const { source, destination } = onSource;
    const translated = sampleFlow({
      ...onSource,
      destination: { kind: "service", address: "10.96.0.1", port: 80, namespace: "shop", name: "db" },
      backend: destination,
      seenAs: { address: "192.168.0.1", port: 5 },
    });
    const seen = sampleFlow({ source: { kind: "host", name: "node-1", address: "192.168.0.1", port: 5 } });

    expect(isPartner(translated, seen)).toBe(true);
    expect(isPartner(translated, sampleFlow({ source }))).toBe(false);
    expect(matcherOf(partnerQuery(translated))(seen)).toBe(true);
    expect(matcherOf(partnerQuery(seen))(translated)).toBe(true);
  });

  test("the query finds it", () => {
    expect(matcherOf(partnerQuery(onDestination))(onSource)).toBe(true);
  });
});

describe("nodesOf()", () => {
  const words = (...flows: Parameters<typeof nodesOf>) =>
    nodesOf(...flows).map(({ node, side, record }) => [node, side, record?.id]);

  test("has the node of the source before that of the destination, whichever has recorded the flow", () => {
    const expected = [
      ["node-1", "source", "node-1/9"],
      ["node-2", "destination", "node-2/1"],
    ];

    expect(words(onDestination, onSource)).toEqual(expected);
    expect(words(onSource, onDestination)).toEqual(expected);
  });

  test("has a node without a record", () => {
    expect(words(onDestination, undefined)).toEqual([
      ["node-1", "source", undefined],
      ["node-2", "destination", "node-2/1"],
    ]);
  });

  test("has one node if both ends are on it, or one is outside", () => {
    const { source, destination } = onDestination;

    expect(words(sampleFlow({ source: { ...source, node: "node-2" } }), undefined)).toEqual([
      ["node-2", "both", "node-2/1"],
    ]);
    expect(words(sampleFlow({ source: { kind: "outside", address: "1.2.3.4" }, destination }), undefined)).toEqual([
      ["node-2", "destination", "node-2/1"],
    ]);
  });
});
