import { describe, expect, test } from "bun:test";
import { openMemory } from "../../../datastore/memory/memory.ts";
import { clusterInformation } from "../../../model/cluster-information.ts";
import { CLUSTER_INFORMATION } from "../../../model/kinds.ts";
import { UPGRADE_LOCK_ANNOTATION } from "../../../model/upgrade-lock-annotation.ts";
import { lockedSince } from "../../former-storage/lock.ts";
import { lateAddsMilliseconds } from "./late-adds.ts";

const at = (time: string) => new Date(`2026-01-02T${time}Z`);

describe("lateAddsMilliseconds()", () => {
  test.each<[string, { since?: string; begun: string; now: string }, number]>([
    ["counts from the lock that this run has set", { since: "03:01:00", begun: "03:00:00", now: "03:01:30" }, 100],
    ["waits for nothing that is over", { since: "03:01:00", begun: "03:00:00", now: "03:10:00" }, 0],
    [
      "counts from its own begin if another run has locked it",
      { since: "02:00:00", begun: "03:00:00", now: "03:00:50" },
      80,
    ],
    [
      "does not believe the clock of a machine that is behind",
      { since: "02:49:59", begun: "03:00:00", now: "03:00:01" },
      129,
    ],
    [
      "waits no longer than an ADD lasts if that clock is ahead",
      { since: "05:00:00", begun: "03:00:00", now: "03:05:00" },
      130,
    ],
    ["nor if its own clock was set back", { since: "03:01:00", begun: "03:00:00", now: "01:00:00" }, 130],
    ["waits for all of it if nobody knows", { begun: "03:00:00", now: "03:10:00" }, 130],
  ])("%s", (_, { since, begun, now }, seconds) => {
    const locked = since === undefined ? undefined : at(since);

    expect(lateAddsMilliseconds({ since: locked, begunAt: at(begun), now: at(now), seconds: 130 })).toBe(
      seconds * 1_000,
    );
  });
});

test("a lock whose time cannot be read is one that nobody knows the time of, but still a lock of the upgrade", async () => {
  const store = openMemory();
  const key = CLUSTER_INFORMATION.key({ name: "default" });
  const made = clusterInformation.make({ name: "default" }, { datastoreReady: false });
  const metadata = { ...made.metadata, annotations: { [UPGRADE_LOCK_ANNOTATION]: "yesterday" } };
  await store.commit([{ kind: "put", key, value: clusterInformation.write({ ...made, metadata }) }]);
  const since = await lockedSince(store);

  expect(since?.toISOString()).toBe("1970-01-01T00:00:00.000Z");
  const times = { since, begunAt: at("03:00:00"), now: at("03:00:50"), seconds: 130 };
  expect(lateAddsMilliseconds(times)).toBe(80_000);
});
