/** An operator that is killed right after a write, and started again, comes to the same end: in the soak after each write. */
import { describe, expect } from "bun:test";
import type { testNeeding } from "../support/needs.ts";
import {
  CONFIGURATIONS,
  contents,
  createInstallation,
  DEFAULT,
  finishNamespace,
  reportDaemonSet,
  SPEC,
  UNINSTALL,
  versions,
} from "../support/operator-objects.ts";
import { type OperatorSite, POOLS } from "../support/operator-site.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";

/** How many writes each of them makes. */
const WRITES = proofSize({ everyDay: 6, soak: 1 });
/** More than any installation takes. */
const MOST_OPERATORS = 80;

export function killedTests(site: () => OperatorSite, testServer: ReturnType<typeof testNeeding>): void {
  describe("an operator that is killed and started again", () => {
    testServer("installs the same, and removes everything", async () => {
      const expected = await uninterrupted();

      await createInstallation(site(), SPEC);
      const installing = await fewWritesAtATime(async () => false);
      expect(await contents(site())).toEqual(expected);
      expect(installing * WRITES).toBeGreaterThan(Object.keys(expected).length - WRITES);

      await site().remove(DEFAULT);
      await fewWritesAtATime(async () => (await site().read(DEFAULT)) === undefined);
      expect(Object.keys(await versions(site())).filter((place) => !place.startsWith(POOLS))).toEqual([
        "/api/v1/namespaces  vendor-system",
      ]);
      await finishNamespace(site());
    });

    async function uninterrupted() {
      await removePools();
      const operator = await site().startOperator();
      await createInstallation(site(), SPEC);
      await operator.untilIdle();
      const end = await contents(site());
      await site().remove(DEFAULT);
      await pollUntil(async () => {
        if ((await site().read(UNINSTALL)) !== undefined) await reportDaemonSet(site(), UNINSTALL, 0);
        return (await site().read(DEFAULT)) === undefined;
      }, "the Installation to be gone");
      await operator.stop();
      await finishNamespace(site());
      await removePools();
      return end;
    }

    async function removePools(): Promise<void> {
      for (const path of [POOLS, CONFIGURATIONS]) {
        for (const { metadata } of await site().list(path)) await site().remove(`${path}/${metadata.name}`);
      }
    }

    /** Starts operators that end after some writes each, until one has no more to do; returns how many were killed. */
    async function fewWritesAtATime(isOver: () => Promise<boolean>): Promise<number> {
      for (let count = 0; count < MOST_OPERATORS; count++) {
        const operator = await site().startOperator({ endsAfter: WRITES });
        const idle = operator.untilIdle().then(
          () => "idle",
          () => "idle",
        );
        const end = await Promise.race([operator.ended.then(() => "killed"), idle]);
        await operator.stop();
        if (end === "idle" || (await isOver())) return count;
        if ((await site().read(UNINSTALL)) !== undefined) await reportDaemonSet(site(), UNINSTALL, 0);
      }
      throw new Error(`no end after ${MOST_OPERATORS} operators`);
    }
  });
}
