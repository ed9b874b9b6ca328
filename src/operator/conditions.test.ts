import { describe, expect, test } from "bun:test";
import { installationState } from "./component-states.ts";
import { AVAILABLE, conditionsOf, degraded, progressing, summaryOf } from "./conditions.ts";
import { eventsOf } from "./events.ts";

const moment = (seconds: number, generation = 1) => ({ now: new Date(seconds * 1_000), generation });

describe("conditionsOf()", () => {
  test("keeps the time of the last transition as long as the status is the same", () => {
    const first = conditionsOf(progressing("ResourceNotReady", "waiting"), [], moment(10));
    const second = conditionsOf(progressing("ResourceNotReady", "still waiting"), first, moment(20, 2));
    const third = conditionsOf(AVAILABLE, second, moment(30));

    const times = [first, second, third].map((conditions) => conditions.map((each) => each.lastTransitionTime));
    const [ten, thirty] = ["1970-01-01T00:00:10Z", "1970-01-01T00:00:30Z"];
    expect(times).toEqual([
      [ten, ten, ten],
      [ten, ten, ten],
      [thirty, thirty, ten],
    ]);
    expect(second.map(({ message, observedGeneration }) => [message, observedGeneration])[1]).toEqual([
      "still waiting",
      2,
    ]);
  });
});

describe("summaryOf()", () => {
  test("is available if every component is", () => {
    expect(summaryOf({ node: AVAILABLE, controllers: AVAILABLE })).toEqual(AVAILABLE);
  });

  test("names the components that are not", () => {
    const state = summaryOf({
      node: degraded("PodFailure", "no image"),
      controllers: progressing("ResourceNotReady", "0 of 2"),
      ippools: AVAILABLE,
    });

    expect(state.available.status).toBe("False");
    expect([state.degraded.reason, state.degraded.message]).toEqual(["PodFailure", "node: no image"]);
    expect(state.progressing.message).toBe("controllers: 0 of 2");
  });
});

describe("eventsOf()", () => {
  const at = (state: Parameters<typeof conditionsOf>[0]) => conditionsOf(state, [], moment(1), "Ready");

  test("reports what becomes degraded, why that changes, and when it is over", () => {
    const [bad, worse, good] = [at(degraded("PodFailure", "a")), at(degraded("PodFailure", "b")), at(AVAILABLE)];

    expect(eventsOf([], bad)).toEqual([{ type: "Warning", reason: "PodFailure", message: "a" }]);
    expect(eventsOf(bad, bad)).toEqual([]);
    expect(eventsOf(bad, worse).map(({ message }) => message)).toEqual(["b"]);
    expect(eventsOf(worse, good).map(({ type, reason }) => [type, reason])).toEqual([["Normal", "Ready"]]);
  });
});

test.each([
  ["Enabled", "v1.30.14", /All objects are available; but the API of flows has none.*Kubernetes v1\.30\.14/],
  ["Enabled", "v1.31.0", /^All objects are available$/],
  ["Enabled", "unknown", /^All objects are available$/],
  ["Disabled", "v1.24.17", /^All objects are available$/],
] as const)("flows %s on Kubernetes %s", (mode, version, message) => {
  const { available } = installationState({ flows: { mode } }, version);
  expect([available.status, available.message]).toEqual(["True", expect.stringMatching(message)]);
});
