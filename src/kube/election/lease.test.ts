import { describe, expect, test } from "bun:test";
import { claimOf, type LeaseSpec, releaseOf } from "./lease.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const me = (elapsed: number) => ({ identity: "me", now: NOW, elapsed });
const seen = (spec: LeaseSpec, since = 0) => ({ lease: { metadata: {}, spec }, since });

describe("the lease of the controllers", () => {
  test("is acquired if there is none", () => {
    expect(claimOf(undefined, me(0))).toEqual({
      holderIdentity: "me",
      leaseDurationSeconds: 15,
      acquireTime: "2026-01-02T03:04:05.678000Z",
      renewTime: "2026-01-02T03:04:05.678000Z",
      leaseTransitions: 0,
    });
  });

  test("is renewed by its holder, who keeps the time of the acquisition", () => {
    const held = { holderIdentity: "me", acquireTime: "before", leaseTransitions: 3 };

    expect(claimOf(seen(held), me(60_000))).toMatchObject({
      acquireTime: "before",
      leaseTransitions: 3,
      renewTime: "2026-01-02T03:04:05.678000Z",
    });
  });

  test("is left to another for as long as it lasts, counted from when its text was seen, whatever its times say", () => {
    const held = { holderIdentity: "other", leaseDurationSeconds: 20, renewTime: "1999-01-01T00:00:00.000000Z" };

    expect(claimOf(seen(held, 1_000), me(20_999))).toBeUndefined();
    expect(claimOf(seen(held, 1_000), me(21_000))).toMatchObject({ holderIdentity: "me", leaseTransitions: 1 });
  });

  test("is acquired at once if its holder gave it back", () => {
    const given = releaseOf({ metadata: {}, spec: { holderIdentity: "other", leaseTransitions: 1 } }, "other", NOW);

    expect(given).toMatchObject({ holderIdentity: "", leaseDurationSeconds: 1 });
    expect(claimOf(seen(given ?? {}), me(1))).toMatchObject({ holderIdentity: "me", leaseTransitions: 2 });
  });

  test("is not given back by anybody else", () => {
    expect(releaseOf({ metadata: {}, spec: { holderIdentity: "other" } }, "me", NOW)).toBeUndefined();
  });
});
