import { describe, expect, test } from "bun:test";
import { type AlpLoad, CLIENT, ownUpdate, peerMessages, probesOf } from "../../bench/support/alp-load.ts";
import { RequestJudge } from "../../src/alp/judge/request-judge.ts";
import { address } from "../support/ip.ts";

const LOADS: readonly AlpLoad[] = [
  { title: "one", rules: 1, sets: 1, addressesPerSet: 3 },
  { title: "many", rules: 25, sets: 25, addressesPerSet: 3 },
  { title: "large sets", rules: 25, sets: 10, addressesPerSet: 300 },
];

describe("the load of the benchmark of application layer policy", () => {
  test.each(LOADS)("is decided as its probes say: $title", (load) => {
    const judge = new RequestJudge("cluster.local");
    judge.apply(ownUpdate(load));

    for (const { method, path, source, isAllowed } of probesOf(load)) {
      const request = { source: address(source), destinationPort: 80, http: { method, path } };
      expect({ path, method, verdict: judge.decide(request).verdict }).toEqual({
        path,
        method,
        verdict: isAllowed ? "allow" : "deny",
      });
    }
  });

  test("decides the measured request with the last rule", () => {
    const judge = new RequestJudge("cluster.local");
    const [, load] = LOADS as [AlpLoad, AlpLoad];
    judge.apply(ownUpdate(load));

    const path = probesOf(load)[0]?.path ?? "";
    const request = { source: address(CLIENT), destinationPort: 80, http: { method: "GET", path } };
    expect(judge.decide(request)).toMatchObject({ policy: "shop/resources-2", rule: 4 });
  });

  test("has the same rules and addresses for both", () => {
    const [, , load] = LOADS as [AlpLoad, AlpLoad, AlpLoad];
    const text = JSON.stringify(peerMessages(load));
    const own = ownUpdate(load);

    expect(text.match(/"httpMatch"/g)).toHaveLength(25);
    expect(text.match(/\/32"/g)).toHaveLength(3_000 + 1);
    expect(Object.values(own.policies ?? {}).flatMap((policy) => policy?.rules ?? [])).toHaveLength(25);
  });
});
