import { describe, expect, test } from "bun:test";
import { checkRequest } from "../../../test/support/check-request.ts";
import { decodeMessage } from "../../../test/support/protobuf.ts";
import type { LogFields, LogLevel } from "../../log/line.ts";
import type { RequestDecision } from "../judge/request-decision.ts";
import type { IncomingRequest } from "../judge/request-judge.ts";
import { authorizationHandlers } from "./authorizer.ts";
import { DecisionCounters } from "./decision-counters.ts";
import { SidecarLog } from "./sidecar-log.ts";

const DENIAL: RequestDecision = {
  verdict: "deny",
  reason: 'rule 2 of policy "shop/secret" denies it',
  policy: "shop/secret",
  rule: 2,
};

function authorizer(decide: (request: IncomingRequest) => RequestDecision, level: LogLevel = "INFO", revision = 1) {
  const lines: { message: string; fields: LogFields }[] = [];
  const counters = new DecisionCounters();
  let now = 0;
  const elapsed = () => now++;
  const log = new SidecarLog(level, (_, message, fields) => lines.push({ message, fields }), elapsed);
  const handlers = authorizationHandlers({ judge: { revision, decide }, counters, log, elapsed });
  const check = (message: Uint8Array, version = "v3") =>
    handlers[`/envoy.service.auth.${version}.Authorization/Check`]?.(message) ?? new Uint8Array();
  return { check, counters, lines };
}

const asked = checkRequest({ http: { method: "GET", path: "/path?token=secret" } });

describe("authorizationHandlers()", () => {
  test("allow with the status OK, and deny with 403 and a text without names of policies", async () => {
    const { check, counters } = authorizer(({ http }) => (http ? DENIAL : { verdict: "allow", reason: "" }));
    const allowed = decodeMessage(await check(checkRequest({})));
    const denied = decodeMessage(await check(asked));

    expect([allowed.messages(1).length, allowed.message(1).number(1), allowed.messages(2).length]).toEqual([1, 0, 0]);
    expect([denied.message(1).number(1), denied.message(2).message(1).number(1)]).toEqual([7, 403]);
    expect(denied.message(2).text(3)).toBe("Denied by network policy\n");
    expect(counters).toMatchObject({ decisions: { allow: 1, deny: 1 }, milliseconds: 2 });
  });

  test("respond to both versions of the service in the same way", async () => {
    const { check } = authorizer(() => DENIAL);

    expect(await check(asked, "v2")).toEqual(await check(asked, "v3"));
  });

  test("deny if the decision throws or the message is malformed, and say so seldom", async () => {
    const { check, counters, lines } = authorizer(() => {
      throw new TypeError("a bug");
    });
    const [denied] = [await check(asked), await check(asked), await check(asked.subarray(0, 9))];

    expect(decodeMessage(denied).message(1).number(1)).toBe(7);
    expect(counters.decisions).toMatchObject({ allow: 0, error: 3 });
    expect(lines).toEqual([{ message: "Denied a request that cannot be decided", fields: { reason: "a bug" } }]);
  });

  test("count denials before the first state apart", async () => {
    const { check, counters } = authorizer(() => DENIAL, "INFO", 0);
    await check(asked);

    expect(counters.decisions).toMatchObject({ deny: 0, "not synchronised": 1 });
  });

  test("log denied requests with policy and rule, without the query, if the level is DEBUG", async () => {
    const { check, lines } = authorizer(() => DENIAL, "DEBUG");
    await check(asked);

    const fields = { source: "10.0.0.1", port: 8080, method: "GET", path: "/path", policy: "shop/secret", rule: 2 };
    expect(lines).toMatchObject([{ message: "Denied a request", fields }]);
  });
});
