/** Random requests through real Envoy against random policies: the answers are those of the slow judge. */
import { expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { openHttpConnection } from "../support/http-connection.ts";
import type { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { SHOP } from "./alp-cluster.ts";
import type { AlpSite } from "./alp-site.ts";
import { isThrough } from "./load.ts";
import { markerPaths, markers, randomPolicies, randomQuestions, SENDERS, TIERS } from "./random-policies.ts";
import { networkPolicy, seenOutcome, titleOf } from "./request-rows.ts";
import { slowJudgeOf } from "./slow-judge.ts";

const { rounds, requests } = proofSize({
  everyDay: { rounds: 1, requests: 600 },
  soak: { rounds: 25, requests: 4_000 },
});
const SEED = 20;

/** `site`: when the tests run. */
export function randomTests(test: ReturnType<typeof testNeeding>, site: () => AlpSite): void {
  test("decides random requests as the slow judge does", async () => {
    const { cluster, targetOf } = site();
    await cluster.apply(...TIERS, networkPolicy("open", [{ action: "Allow", http: {} }]));
    const senders = SENDERS.map((sender) => ({
      ...sender,
      connection: openHttpConnection(targetOf(sender.client, sender.identity), 5_000),
    }));
    // Established while all may connect: only the sidecar decides from here on, and nothing waits for a dropped packet.
    for (const { connection } of senders) {
      await pollUntil(
        async () => isThrough({ outcome: await connection.ask({ method: "GET", path: "/" }) }),
        "the policy",
      );
    }
    await cluster.controlPlane.server.kubectl([
      "delete",
      `networkpolicies.${identity.apiGroup}`,
      "open",
      `--namespace=${SHOP}`,
    ]);
    const addresses = Object.values(cluster.clients).map(({ address }) => address);
    const count = { through: 0, denied: 0, repeated: 0 };
    const different: string[] = [];
    for (let round = 0; round < rounds; round += 1) {
      await cluster.apply(...randomPolicies(addresses, SEED + round), ...markers(round));
      for (const path of markerPaths(round)) {
        const [first] = senders;
        await pollUntil(
          async () => isThrough({ outcome: (await first?.connection.ask({ method: "GET", path })) ?? "closed" }),
          `round ${round}`,
        );
      }
      const judge = await slowJudgeOf(cluster, "web");
      await Promise.all(
        senders.map(async ({ connection, ...sender }, index) => {
          const questions = randomQuestions(
            Math.ceil(requests / senders.length),
            SEED + round * senders.length + index,
          );
          for (const question of questions) {
            const request = { ...sender, ...question };
            const expected = judge(request);
            let seen = seenOutcome(await connection.ask(question));
            // On an overloaded machine Envoy does not wait for the sidecar: only what must be denied is asked once.
            if (expected === "through" && seen === "denied") {
              count.repeated += 1;
              seen = seenOutcome(await connection.ask(question));
            }
            count[expected] += 1;
            if (seen !== expected) different.push(`round ${round}: ${titleOf(request)}: ${seen}, but ${expected}`);
          }
        }),
      );
    }
    for (const { connection } of senders) connection[Symbol.dispose]();
    console.log(
      `random requests: ${count.through} allowed, ${count.denied} denied, ${count.repeated} repeated, ${different.length} differ`,
    );
    expect(different).toEqual([]);
    expect(count.through + count.denied).toBeGreaterThanOrEqual(rounds * requests);
  });
}
