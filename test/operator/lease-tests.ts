/** Of several operators one writes; the next one takes over, knowing everything already. */
import { describe, expect } from "bun:test";
import type { testNeeding } from "../support/needs.ts";
import { CONFIG, createInstallation, SPEC } from "../support/operator-objects.ts";
import type { OperatorSite } from "../support/operator-site.ts";
import { pollUntil } from "../support/poll.ts";

export function leaseTests(site: () => OperatorSite, testServer: ReturnType<typeof testNeeding>): void {
  describe("two operators", () => {
    testServer("write one after the other", async () => {
      const first = await site().startOperator({ withLease: true });
      await pollUntil(() => first.isLeading(), "the first operator to lead");
      const second = await site().startOperator({ withLease: true });
      await createInstallation(site(), SPEC);
      await first.untilIdle();
      await pollUntil(() => second.running.state.isListed, "the second operator to know everything");
      expect([first.writes.length > 0, second.writes, second.isLeading()]).toEqual([true, [], false]);

      const before = (await site().read(CONFIG)).data.config;
      await first.stop();
      await site().patch(CONFIG, { data: { config: "edited" } });
      await site().until(CONFIG, (object) => object.data.config === before, "the second operator to put it back");
      // The server shows it before the operator has read the answer.
      await pollUntil(() => second.writes.length > 0, "the second operator to have written it");
      await second.stop();
    });
  });
}
