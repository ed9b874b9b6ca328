import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { means } from "../../test/support/ipam.ts";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import { tryLockFile, unlockFile } from "../linux/flock.ts";
import { openHostTurn } from "./host-turn.ts";
import { SharedTurns } from "./shared-turns.ts";

const folder = temporaryDirectory("turn");
afterAll(() => folder.remove());

const KINDS: readonly (readonly [string, typeof openHostTurn])[] = [
  ["openHostTurn()", openHostTurn],
  ["SharedTurns.open()", (path, means) => new SharedTurns().open(path, means)],
];

for (const [name, open] of KINDS) {
  describe(name, () => {
    test("lets one work at a time, and the next when the first has failed", async () => {
      const turn = open(join(folder.path, `one of ${name}`), means());
      let working = 0;
      const work = async () => {
        working += 1;
        expect(working).toBe(1);
        await new Promise((resolve) => setImmediate(resolve));
        working -= 1;
        throw new Error("failed");
      };

      const all = await Promise.allSettled([turn(work), turn(work), turn(work)]);

      expect(all.map((each) => each.status === "rejected" && each.reason.message)).toEqual([
        "failed",
        "failed",
        "failed",
      ]);
    });

    test("lets the next one begin as soon as the first leaves, which ends nothing of another's", async () => {
      const turn = open(join(folder.path, `left of ${name}`), means());
      const order: string[] = [];
      const gate = Promise.withResolvers<void>();
      const slow = turn(async (leave) => {
        leave();
        await gate.promise;
        order.push("slow");
      });
      await turn(async () => {
        order.push("quick");
      });
      gate.resolve();
      await slow;

      expect(order).toEqual(["quick", "slow"]);
    });

    test("goes on without the lock when its holder does not let go, or where there can be none", async () => {
      const path = join(folder.path, `held of ${name}`);
      const held = tryLockFile(path);
      let clock = 0;
      const impatient = open(path, {
        ...means(),
        now: () => {
          clock += 1000;
          return new Date(clock);
        },
      });

      expect(await impatient(async () => "done")).toBe("done");
      expect(await open("/proc/nowhere/lock", means())(async () => "done")).toBe("done");
      if (held) unlockFile(held);
    });
  });
}

describe("SharedTurns.open()", () => {
  test("gives the calls of one agent their turns in their order, without waiting for time to pass", async () => {
    const turn = new SharedTurns().open(join(folder.path, "line"), { ...means(), wait: () => new Promise(() => {}) });
    const order: number[] = [];
    const work = (place: number) => async () => {
      await new Promise((resolve) => setImmediate(resolve));
      order.push(place);
    };
    await Promise.all([1, 2, 3, 4].map((place) => turn(work(place))));

    expect(order).toEqual([1, 2, 3, 4]);
  });
});
