import { beforeEach, describe, expect, test } from "bun:test";
import { CollectorFeed } from "./collector-feed.ts";

const RULE = "shop/db ingress 0";

let feed: CollectorFeed;
beforeEach(() => {
  feed = new CollectorFeed({ nameOf: () => ({ kind: "outside" }), resource: () => undefined, changed: () => {} });
});

describe("CollectorFeed.take()", () => {
  const settings = (mostPerSecond: number) =>
    ({ node: "one", vxlanPort: 4789, historyMegabytes: 1, historyMilliseconds: 1, mostPerSecond }) as const;

  test("the collector begins when it knows the workloads of its node; later settings come before names", () => {
    feed.setSettings(settings(1));
    for (let index = 0; index < 300; index++) feed.addName(`10.0.0.${index}`);
    expect([1, 2, 3].map(() => feed.take()?.kind)).toEqual(["names", "names", "settings"]);
    feed.addName("10.0.0.1");
    feed.setSettings(settings(2));
    expect([1, 2].map(() => feed.take()?.kind)).toEqual(["settings", "names"]);
  });
});

describe("CollectorFeed.setDenied()", () => {
  /** What the collector is told when the rules have counted so many in all. */
  const told = (...counts: readonly (readonly [string, number])[]) => {
    feed.setDenied(counts);
    const message = feed.take();
    return message?.kind === "denied" ? message.counts : message;
  };

  test("tells what came to each rule, and not what it had counted before", () => {
    expect(told([RULE, 100])).toBeUndefined();
    expect(told([RULE, 100])).toBeUndefined();
    expect(told([RULE, 105], ["added", 2])).toEqual([
      [RULE, 5],
      ["added", 2],
    ]);
  });

  test("adds up what the collector has not taken yet", () => {
    for (const packets of [0, 3, 7]) feed.setDenied([[RULE, packets]]);
    expect(feed.take()).toEqual({ kind: "denied", counts: [[RULE, 7]] });
    expect(feed.take()).toBeUndefined();
  });

  test("a sum that falls is no jump: what comes to it from then on is told", () => {
    told([RULE, 100]);
    // One of two rules is gone, or the table was replaced.
    expect(told([RULE, 60])).toBeUndefined();
    expect(told([RULE, 0])).toBeUndefined();
    expect(told([RULE, 4])).toEqual([[RULE, 4]]);
  });

  test("a rule that is gone is forgotten, and begins at 0 when it comes again", () => {
    told([RULE, 100]);
    told();
    expect(told([RULE, 2])).toEqual([[RULE, 2]]);
  });

  test("the sums of another enforcement are not compared with those of the former one", () => {
    told([RULE, 1]);
    feed.forgetDenied();
    expect(told([RULE, 100])).toBeUndefined();
    expect(told([RULE, 101])).toEqual([[RULE, 1]]);
  });
});
