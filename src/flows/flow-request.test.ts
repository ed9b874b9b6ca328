import { describe, expect, test } from "bun:test";
import type { FlowQuestion } from "./flow-answer.ts";
import { FlowQueryError } from "./flow-query.ts";
import { readFlowRequest, readTarget, targetOf } from "./flow-request.ts";

describe("readTarget()", () => {
  test("reads what targetOf() writes", () => {
    const questions: readonly FlowQuestion[] = [
      { kind: "flows", query: {}, follow: false },
      { kind: "flows", query: { since: 5, pod: "shop/we*", label: "a=b,c", port: 443 }, follow: true },
      { kind: "rollups", query: { from: "10.0.0.0/8", verdict: "denied" } },
      { kind: "explanation", id: "node/1 &?" },
    ];
    for (const question of questions) expect(readTarget(targetOf(question))).toEqual(question);
  });

  test("knows no other path", () => {
    expect(readTarget("/metrics")).toBeUndefined();
  });
});

describe("readFlowRequest()", () => {
  test("takes watch for follow", () => {
    expect(readFlowRequest("flows", new URLSearchParams("watch=true"))).toMatchObject({ follow: true });
    expect(readFlowRequest("flows", new URLSearchParams("watch=1&follow=true"))).toMatchObject({ follow: true });
    expect(readFlowRequest("flows", new URLSearchParams("watch=false"))).toMatchObject({ follow: false });
  });

  test.each([
    ["flows", "follow=maybe", "follow"],
    ["flows", "follow=true&follow=true", "follow"],
    ["flows", "colour=red", "colour"],
    ["rollups", "follow=true", "follow"],
    ["explanation", "", "id"],
    ["explanation", "id=", "id"],
    ["explanation", "id=1&pod=a", "pod"],
  ] as const)("refuses /%s?%s, and names the field", (path, parameters, field) => {
    let failure: unknown;
    try {
      readFlowRequest(path, new URLSearchParams(parameters));
    } catch (error) {
      failure = error;
    }
    expect(failure).toBeInstanceOf(FlowQueryError);
    expect((failure as FlowQueryError).field).toBe(field);
  });
});
