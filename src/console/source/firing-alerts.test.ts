import { describe, expect, test } from "bun:test";
import { identity } from "../../identity.ts";
import { alertGroups } from "../../release/alerts.ts";
import { alertsByNode, alertsPart, readFiringAlerts } from "./firing-alerts.ts";

const NOW = new Date("2026-01-02T03:04:05Z");
const RULES = alertGroups(identity).flatMap(({ rules }) => rules);
const FULL = nameOf("PoolFull");
const OVERDUE = nameOf("AddressesOverdue");
const NOT_IN_SYNC = nameOf("NodeAgentNotInSync");
const NODES = [
  { name: "one", addresses: ["192.0.2.1", "fd00::1"] },
  { name: "two", addresses: ["192.0.2.2"] },
];

function nameOf(suffix: string): string {
  return RULES.find(({ alert }) => alert.endsWith(suffix))?.alert ?? expect.unreachable();
}

/** As Prometheus 2.42 writes it. */
function alert(alertname: string, labels: object = {}, more: object = {}): object {
  return {
    labels: { alertname, severity: "warning", ...labels },
    annotations: { summary: `Something about ${alertname}`, runbook: "docs/alerts.md#a-pool-runs-full" },
    ...{ state: "firing", activeAt: "2026-01-02T03:00:00.602614Z", value: "1e+00", ...more },
  };
}

function answer(...alerts: readonly unknown[]): string {
  return JSON.stringify({ status: "success", data: { alerts } });
}

function read(...alerts: readonly unknown[]) {
  return readFiringAlerts(answer(...alerts), NOW);
}

function messages(...alerts: readonly unknown[]): readonly string[] {
  return read(...alerts).alerts.map(({ problem }) => problem.message);
}

describe("readFiringAlerts()", () => {
  test("says what fires, that Prometheus says it, since when and where to read on", () => {
    expect(read(alert(FULL, { severity: "critical" })).alerts).toEqual([
      {
        problem: {
          state: "failed",
          message: `Prometheus alert ${FULL}: Something about ${FULL}`,
          remedy: "see docs/alerts.md#a-pool-runs-full",
          since: Date.parse("2026-01-02T03:00:00.602Z"),
        },
        places: [],
      },
    ]);
  });

  test("leaves out alerts that are pending, and those of other rules", () => {
    const others = [alert(FULL, {}, { state: "pending" }), alert("Watchdog"), alert("__proto__"), alert("toString")];
    expect(read(...others, alert(`${FULL} `))).toEqual({ alerts: [], more: 0 });
  });

  test("knows every rule that is shipped", () => {
    expect(messages(...RULES.map((rule) => alert(rule.alert)))).toHaveLength(RULES.length);
  });

  test("takes from the shipped rule what an alert does not say", () => {
    const [found] = read({ labels: { alertname: FULL }, state: "firing" }).alerts;
    const rule = RULES.find(({ alert: name }) => name === FULL);
    expect(found?.problem).toEqual({
      ...{ state: "failed", message: `Prometheus alert ${FULL}`, remedy: `see ${rule?.annotations.runbook}` },
    });
  });

  test("shows texts as one line of words, not too long, and offers none of them as a command", () => {
    const summary = `a\nb\u202Ec\u0000 <b>${"x".repeat(100_000)}`;
    const runbook = `kubectl delete node one\r\n${"y".repeat(1_000)}`;
    const [found] = read(alert(FULL, {}, { annotations: { summary, runbook } })).alerts;
    const { message = "", remedy = "" } = found?.problem ?? {};
    expect(message).toStartWith(`Prometheus alert ${FULL}: a b c <b>xxx`);
    expect(remedy).toStartWith("see kubectl delete node one yyy");
    expect([message.length, remedy.length].every((length) => length < 300)).toBe(true);
    expect(found?.problem).not.toHaveProperty("command");
  });

  test("does not say that something began in the future, or at no time", () => {
    const times = ["2030-01-01T00:00:00Z", "soon"].map(
      (activeAt) => read(alert(FULL, {}, { activeAt })).alerts[0]?.problem.since,
    );
    expect(times).toEqual([NOW.getTime(), undefined]);
  });

  test("says once what several replicas say, since the first of them", () => {
    const later = alert(FULL, { replica: "b" }, { activeAt: "2026-01-02T03:02:00Z" });
    expect(read(later, alert(FULL, { replica: "a" })).alerts.map(({ problem }) => problem.since)).toEqual([
      Date.parse("2026-01-02T03:00:00.602Z"),
    ]);
  });

  test("shows at most a hundred, the gravest first, and counts the rest", () => {
    const pool = (index: number, severity: string) =>
      alert(FULL, { severity }, { annotations: { summary: `pool ${index}` } });
    const many = Array.from({ length: 120 }, (_, index) => pool(index, index < 119 ? "warning" : "critical"));
    const found = read(...many);
    expect([found.alerts.length, found.more, found.alerts[0]?.problem.state]).toEqual([100, 20, "failed"]);
    expect(alertsPart({ kind: "firing", ...found }, 7)).toEqual([
      { name: "alerts", state: "failed", detail: "120 alerts; the 100 gravest are shown", knownAt: 7 },
    ]);
  });

  test.each([
    ["no JSON", "<html>login</html>", "is not JSON"],
    ["an error of Prometheus", '{"status":"error","errorType":"x"}', '"status"'],
    ["another document", '{"status":"success","data":{"result":[]}}', '"data.alerts"'],
    [
      "labels of another type",
      answer({ labels: { alertname: 7 }, state: "firing" }),
      '"data.alerts[0].labels.alertname"',
    ],
    ["deep nesting", `${"[".repeat(5_000)}${"]".repeat(5_000)}`, "is not JSON"],
  ])("refuses %s, and says where", (_title, text, part) => {
    expect(() => readFiringAlerts(text, NOW)).toThrow(part);
  });
});

describe("alertsByNode()", () => {
  function nodesOf(found: object): readonly (string | undefined)[] {
    return [...alertsByNode({ kind: "firing", ...read(found) }, NODES).keys()];
  }

  test.each([
    ["the name of the node", alert(OVERDUE, { node: "two" }), "two"],
    ["the address of its agent", alert(NOT_IN_SYNC, { instance: "192.0.2.1:9091" }), "one"],
    ["an IPv6 address", alert(NOT_IN_SYNC, { instance: "[fd00::1]:9091" }), "one"],
    ["its name and a port", alert(NOT_IN_SYNC, { instance: "two:9091" }), "two"],
    ["a label of the scrape besides", alert(NOT_IN_SYNC, { node: "two", instance: "10.0.0.7:9091" }), "two"],
    ["a node that is not known", alert(OVERDUE, { node: "three" }), undefined],
    ["no label", alert(OVERDUE), undefined],
    ["a pool", alert(FULL, { node: "one" }), undefined],
    [
      "controllers in the network of a node",
      alert(nameOf("ControllerKeysFail"), { instance: "192.0.2.1:9095" }),
      undefined,
    ],
  ])("knows the node of an alert by %s", (_title, found, node) => {
    expect(nodesOf(found)).toEqual([node]);
  });

  test("has no node for who may see none", () => {
    const found = { kind: "firing", ...read(alert(OVERDUE, { node: "two" })) } as const;
    expect([...alertsByNode(found, []).keys()]).toEqual([undefined]);
  });
});

describe("alertsPart()", () => {
  test("says that none fires, that it is not known, or nothing to who may not ask", () => {
    expect(alertsPart({ kind: "firing", alerts: [], more: 0 }, 7)).toEqual([
      { name: "alerts", state: "ok", detail: "none fires", knownAt: 7 },
    ]);
    expect(alertsPart({ kind: "unknown", reason: "no answer" }, 7)).toEqual([
      { name: "alerts", state: "unknown", detail: "no answer", knownAt: 7 },
    ]);
    expect(alertsPart({ kind: "hidden", what: "alerts" }, 7)).toEqual([]);
  });
});
