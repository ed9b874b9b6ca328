/** The commands about flows against a server that gives recorded answers; against the real one: test/flows. */
import { afterAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { imitateApi, kubeconfigText, meansWith } from "../../../test/support/imitated-api.ts";
import {
  ALLOWED,
  type Answering,
  DENIED,
  imitateNode,
  linesOf,
  NO_LOSSES,
  OLDER,
  rollup,
  START,
  WELL,
} from "../../../test/support/imitated-flows.ts";
import { temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import type { FlowAnswer, FlowExplanation } from "../../flows/flow-answer.ts";
import type { FlowRecord } from "../../flows/flow-record.ts";
import { FLOWS_API, identity } from "../../identity.ts";
import { openKubeClient } from "../../kube/client.ts";
import { FLOW_READER } from "../../release/workloads/names.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../main/command.ts";
import { Interruption } from "../main/interruption.ts";

const directory = temporaryDirectory("admin-flows");
afterAll(() => directory.remove());
let hosts = 0;
function newDirectory(): string {
  hosts += 1;
  return join(directory.path, String(hosts));
}

const flow = (record: FlowRecord): FlowAnswer => ({ flow: record });
const ALL = [flow(OLDER), flow(ALLOWED), flow(DENIED), WELL];

type ExplainedFlowSide = NonNullable<FlowExplanation["sides"]>[number];

interface Asked {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly asked: readonly string[];
}

async function ask(
  words: string,
  answer: readonly FlowAnswer[] | Answering,
  more: AdminSurroundings = {},
): Promise<Asked> {
  using node = imitateNode(newDirectory(), typeof answer === "function" ? answer : () => answer);
  const run = await runInside(words.split(" "), { ...more, env: { ...node.env, ...more.env } });
  return { ...run, asked: node.asked };
}

const at = (terminalWidth: number): AdminSurroundings => ({ isTerminal: true, terminalWidth, env: { NO_COLOR: "1" } });

describe("flows", () => {
  test("shows the last flows in a table: who, whom, which port, and what decided", async () => {
    const { code, stdout, stderr, asked } = await ask("flows", ALL);

    expect([code, stderr, asked]).toEqual([EXIT_OK, "", ["/flows?last=20"]]);
    expect(stdout).toBe(
      [
        "TIME             SOURCE                  DESTINATION                    PORT       VERDICT   BY                               STATE    PACKETS   BYTES     ID",
        "01-01 03:04:01   node/node-1             set/resolvers                  53/udp     allowed   unknown: older than the switch   open     2         270 B     n1-3",
        "03:04:01         shop/web-7f5d9c-x2x4z   service/shop/db -> shop/db-0   5432/tcp   allowed   shop/db ingress[0]               ended    22        46.6 kB   n1-2",
        "03:04:01         203.0.113.77            shop/db-0                      5432/tcp   denied    shop/db ingress[1]               denied   3         180 B     n2-9",
        "",
      ].join("\n"),
    );
  });

  test("writes two lines for each flow on a terminal of 80 columns", async () => {
    const { stdout } = await ask("flows", [flow(ALLOWED), flow(DENIED)], at(80));

    expect(
      stdout
        .split("\n")
        .map((line) => line.length)
        .every((length) => length <= 80),
    ).toBe(true);
    expect(stdout).toMatchInlineSnapshot(`
      "03:04:01 allowed shop/web-7f5d9c-x2x4z -> service/shop/db -> shop/db-0 5432/tcp
                       by shop/db ingress[0], ended, 22 packets, 46.6 kB, ID n1-2
      03:04:01 denied  203.0.113.77 -> shop/db-0 5432/tcp
                       by shop/db ingress[1], 3 packets, 180 B, ID n2-9
      "
    `);
  });

  test("writes a few lines for each flow if the terminal has 40 columns, and leaves out nothing of them", async () => {
    const { stdout } = await ask("flows", [flow(ALLOWED), flow(DENIED)], at(40));

    expect(
      stdout
        .split("\n")
        .map((line) => line.length)
        .every((length) => length <= 40),
    ).toBe(true);
    expect(stdout).toMatchInlineSnapshot(`
      "03:04:01 allowed
        shop/web-7f5d9c-x2x4z ->
        service/shop/db -> shop/db-0 5432/tcp
        by shop/db ingress[0], ended, 22
        packets, 46.6 kB, ID n1-2
      03:04:01 denied
        203.0.113.77 -> shop/db-0 5432/tcp
        by shop/db ingress[1], 3 packets, 180
        B, ID n2-9
      "
    `);
  });

  test("paints the verdict on a terminal, and nothing if colours are off", async () => {
    const [red, green] = ["\u001b[31mdenied\u001b[0m", "\u001b[32mallowed\u001b[0m"];
    for (const terminalWidth of [200, 40]) {
      const { stdout } = await ask("flows", ALL, { isTerminal: true, terminalWidth });
      expect([stdout.includes(red), stdout.includes(green)]).toEqual([true, true]);
      expect((await ask("flows", ALL, at(terminalWidth))).stdout).not.toContain("\u001b");
    }
  });

  test("-o wide shows translations, every decision, nodes and times", async () => {
    const { stdout } = await ask("flows -o wide", ALL, at(80));

    expect(stdout).toMatchInlineSnapshot(`
      "TIME                       NODE     SOURCE                                   SEEN AS          DESTINATION                         BACKEND                     PROTOCOL   DIRECTION   VERDICT   STATE                           DURATION     SENT                  RECEIVED              ID     DECISIONS
      2026-01-01T03:04:01.250Z   node-1   node/node-1 ([fd00::2]:5353)             [fd00::1]:6000   set/resolvers ([2001:db8::53]:53)                               udp        egress      allowed   open                            24 h 0 min   1 packet, 70 B        1 packet, 200 B       n1-3   host out: unknown: the connection began before flows were switched on
      2026-01-02T03:04:01.250Z   node-1   shop/web-7f5d9c-x2x4z (10.0.0.5:41234)                    service/shop/db (10.96.0.20:5432)   shop/db-0 (10.0.1.7:5432)   tcp        both        allowed   ended                           12.3 s       12 packets, 1.03 kB   10 packets, 45.6 kB   n1-2   workload egress: allow by an egress rule of a profile; workload ingress: allow by NetworkPolicy "shop/db", ingress rule 1 (spec.ingress[0])
      2026-01-02T03:04:01.750Z   node-2   203.0.113.77:50000                                        shop/db-0 (10.0.1.7:5432)                                       tcp        ingress     denied    denied, 7 more without a flow   1.0 s        3 packets, 180 B      0 packets, 0 B        n2-9   workload ingress: deny by NetworkPolicy "shop/db", ingress rule 2 (spec.ingress[1])
      "
    `);
  });

  test("the last flows are in the order of their beginning; others come as nodes send them", async () => {
    const ids = async (words: string) =>
      (
        await ask(
          words,
          [DENIED, ALLOWED].map((flow) => ({ flow })),
        )
      ).stdout;
    expect(await ids("flows --last 2 -o jsonpath={.id}")).toBe("n1-2\nn2-9\n");
    expect(await ids("flows --since 1h -o jsonpath={.id}")).toBe("n2-9\nn1-2\n");
  });

  test("-o json prints one record on each line", async () => {
    const { stdout } = await ask("flows -o json", ALL);

    expect(
      stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual([OLDER, ALLOWED, DENIED]);
  });

  test("-o jsonpath prints a line for each flow", async () => {
    const { stdout } = await ask("flows -o jsonpath={.source.name}/{.verdict}", ALL);

    expect(stdout).toBe("node-1/allowed\nweb-7f5d9c-x2x4z/allowed\n/denied\n");
    const wrong = await ask("flows -o jsonpath={.a[}", ALL);
    expect([wrong.code, wrong.stderr]).toEqual([
      EXIT_USAGE,
      expect.stringContaining("is not a valid jsonpath template"),
    ]);
  });

  test.each([
    ["flows --last 5", "last=5"],
    ["flows --since 5m", `since=${Date.parse("2026-01-02T02:59:05Z")}`],
    ["flows --since 2d --last 3", `last=3&since=${Date.parse("2025-12-31T03:04:05Z")}`],
    ["flows --until 2026-01-01T00:00:00Z", `last=20&until=${Date.parse("2026-01-01T00:00:00Z")}`],
    ["flows -n shop", "last=20&namespace=shop"],
    ["flows -n shop --pod web --to 10.0.0.5 --from other/db", "from=other/db&last=20&pod=shop/web&to=10.0.0.5"],
    ["flows -n shop --to outside --from web*", "from=shop/web*&last=20&to=outside"],
    ["flows -l app=web --port 53 --protocol udp", "label=app=web&last=20&port=53&protocol=udp"],
    ["flows --verdict denied --policy shop/db --node node-2", "last=20&node=node-2&policy=shop/db&verdict=denied"],
    ["flows -f", "follow=true&last=20"],
    ["-n shop flows", "last=20&namespace=shop"],
  ])("%s asks for %s", async (words, expected) => {
    const { asked } = await ask(words, ALL);

    const [path, query = ""] = asked[0]?.split("?") ?? [];
    expect([path, query.split("&").sort().join("&")]).toEqual(["/flows", expected]);
  });

  test.each([
    ["flows --since yesterday", '"--since" is "yesterday"'],
    ["flows --last many", '"--last" is "many"'],
    ["flows --port http", '"--port": "http" is not a number'],
    ["flows --protocol ip", '"--protocol": "ip" is not a protocol'],
    ["flows --verdict dropped", "use denied"],
    ["flows --from a/b/c", '"--from": "a/b/c" is not a name'],
    ["flows --label a=b=c", '"--label"'],
    ["flows tpo", 'did you mean "top"?'],
    ["flows --verdict denied top", "write vendorctl flows top [OPTIONS]"],
    ["flows --local --kubeconfig x", "give one of them"],
    ["flows explain", "Give the ID of one flow"],
    ["flows explain a b", "Give the ID of one flow"],
  ])("%s is a wrong call: %s", async (words, message) => {
    const { code, stderr, asked } = await ask(words, ALL);

    expect([code, asked]).toEqual([EXIT_USAGE, []]);
    expect(stderr).toContain(message);
  });

  test("shows what the user may not see as hidden", async () => {
    const hidden: FlowRecord = {
      ...DENIED,
      node: "hidden",
      destination: { kind: "hidden", address: "10.0.1.7", port: 5432 },
      decisions: [{ point: "workload ingress", verdict: "deny" }],
    };
    const line = (await ask("flows", [flow(hidden)])).stdout.split("\n")[1];

    expect(line?.split(/ {3,}/).slice(1, 6)).toEqual(["203.0.113.77", "10.0.1.7", "5432/tcp", "denied", "hidden"]);
    const wide = (await ask("flows -o wide", [flow(hidden)])).stdout;
    expect(wide).toContain("workload ingress: deny: you may not list the end that its rules protect");
  });

  test("says if there is none", async () => {
    expect(await ask("flows", [WELL])).toMatchObject({ code: EXIT_OK, stdout: "", stderr: "No flow was found\n" });
  });
});

const toOutside = rollup({
  destination: { kind: "outside" },
  port: 443,
  verdict: "denied",
  rules: ["workload egress: tier default egress default"],
  flows: 40,
  packets: 40,
  bytes: 2_400,
});

describe("flows top", () => {
  test("sums by pair, the most flows first", async () => {
    const { code, stdout, asked } = await ask("flows top", [
      rollup(),
      rollup({ flows: 2, packets: 5, bytes: 500 }),
      toOutside,
      WELL,
    ]);

    expect([code, asked]).toEqual([EXIT_OK, [`/rollups?since=${Date.parse("2026-01-02T02:04:05Z")}`]]);
    expect(stdout).toMatchInlineSnapshot(`
      "FLOWS   VERDICT   SOURCE     DESTINATION   PORT       BYTES     PACKETS
      40      denied    shop/web   outside       443/tcp    2.40 kB   40
      5       allowed   shop/web   shop/db       5432/tcp   5.00 kB   35
      "
    `);
  });

  test("sums by source, destination, port or rule", async () => {
    const by = async (what: string) => (await ask(`flows top --by ${what}`, [rollup(), toOutside])).stdout;

    expect(await by("source")).toMatchInlineSnapshot(`
      "FLOWS   VERDICT   SOURCE     BYTES     PACKETS
      40      denied    shop/web   2.40 kB   40
      3       allowed   shop/web   4.50 kB   30
      "
    `);
    expect(await by("destination")).toMatchInlineSnapshot(`
      "FLOWS   VERDICT   DESTINATION   BYTES     PACKETS
      40      denied    outside       2.40 kB   40
      3       allowed   shop/db       4.50 kB   30
      "
    `);
    expect(await by("port")).toMatchInlineSnapshot(`
      "FLOWS   VERDICT   PORT       BYTES     PACKETS
      40      denied    443/tcp    2.40 kB   40
      3       allowed   5432/tcp   4.50 kB   30
      "
    `);
    expect(await by("rule")).toMatchInlineSnapshot(`
      "FLOWS   VERDICT   RULE                          POINT              BYTES     PACKETS
      40      denied    end of tier default, egress   workload egress    2.40 kB   40
      3       allowed   rule of a profile, egress     workload egress    4.50 kB   30
      3       allowed   shop/db ingress[0]            workload ingress   4.50 kB   30
      "
    `);
  });

  test("sorts by bytes, says how many rows are left out, and prints JSON", async () => {
    const { stdout, stderr } = await ask("flows top --sort bytes --last 1 -o json", [rollup(), toOutside]);

    expect(JSON.parse(stdout)).toEqual({
      ...{ source: "shop/web", destination: "shop/db", port: "5432/tcp", verdict: "allowed" },
      ...{ flows: 3, packets: 30, bytes: 4_500 },
    });
    expect(stderr).toBe("Note: 1 more row; show all with --last 0\n");
  });

  test("fits 80 and 40 columns", async () => {
    const narrow = async (width: number) => (await ask("flows top", [rollup(), toOutside], at(width))).stdout;

    expect(await narrow(80)).toMatchInlineSnapshot(`
      "FLOWS   VERDICT   SOURCE     DESTINATION   PORT       BYTES     PACKETS
      40      denied    shop/web   outside       443/tcp    2.40 kB   40
      3       allowed   shop/web   shop/db       5432/tcp   4.50 kB   30
      "
    `);
    expect(await narrow(40)).toMatchInlineSnapshot(`
      "FLOWS   VERDICT   SOURCE …
      40      denied    shop/web
      3       allowed   shop/web
      "
    `);
  });
});

describe("flows explain", () => {
  const side: ExplainedFlowSide = {
    direction: "ingress",
    of: "shop/db-0",
    namespace: "shop",
    verdict: "denied",
    reason: "rule 2 denies it: no source matches",
    policies: [
      { title: "NetworkPolicy shop/db", tier: "default", outcome: "ingress rule 2 denies it" },
      { title: "GlobalNetworkPolicy last", tier: "default", outcome: "not reached" },
    ],
  };
  const explanation: FlowAnswer = {
    explanation: { flow: DENIED, sides: [side], missing: ["the labels of 203.0.113.77 are not known"] },
  };

  test("shows the flow, the policies of each side, and what is not known", async () => {
    const { code, stdout, asked } = await ask("flows explain n2-9", [explanation, WELL], at(100));

    expect([code, asked]).toEqual([EXIT_OK, ["/explanation?id=n2-9"]]);
    expect(stdout).toMatchInlineSnapshot(`
      "From:       203.0.113.77:50000
      To:         shop/db-0 (10.0.1.7:5432)
      Verdict:    denied
      Protocol:   5432/tcp
      Began:      2026-01-02T03:04:01.750Z
      Seen by:    node node-2
      Sent:       3 packets, 180 B
      Decided:    workload ingress: deny by NetworkPolicy "shop/db", ingress rule 2 (spec.ingress[1])

      Ingress of shop/db-0: denied
        Because:    rule 2 denies it: no source matches
        Policies:   1.   NetworkPolicy shop/db      tier default   ingress rule 2 denies it
                    2.   GlobalNetworkPolicy last   tier default   not reached

      Note:       the labels of 203.0.113.77 are not known
      "
    `);
  });

  test("breaks lines on a narrow terminal, and leaves nothing out", async () => {
    const { stdout } = await ask("flows explain n2-9", [explanation], at(40));

    for (const line of stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(40);
    expect(stdout).toMatchInlineSnapshot(`
      "From:       203.0.113.77:50000
      To:         shop/db-0 (10.0.1.7:5432)
      Verdict:    denied
      Protocol:   5432/tcp
      Began:      2026-01-02T03:04:01.750Z
      Seen by:    node node-2
      Sent:       3 packets, 180 B
      Decided:    workload ingress: deny by
                  NetworkPolicy "shop/db",
                  ingress rule 2
                  (spec.ingress[1])

      Ingress of shop/db-0: denied
        Because:    rule 2 denies it: no
                    source matches
        Policies:   1. NetworkPolicy shop/db
                      tier default
                      ingress rule 2 denies it
                    2. GlobalNetworkPolicy
                    last
                      tier default
                      not reached

      Note:       the labels of 203.0.113.77
                  are not known
      "
    `);
  });

  test("-o json prints what the node said", async () => {
    const { stdout } = await ask("flows explain n2-9 -o json", [explanation]);

    expect<unknown>({ explanation: JSON.parse(stdout) }).toEqual(explanation);
  });

  test("shows the labels that selectors were compared with", async () => {
    const { stdout } = await ask("flows explain n1-2", [{ explanation: { flow: ALLOWED, missing: [] } }]);
    expect(stdout.split("\n").slice(0, 4)).toEqual([
      "From:       shop/web-7f5d9c-x2x4z (10.0.0.5:41234)",
      "            labels app=web",
      "To:         service/shop/db (10.96.0.20:5432)",
      "Leads to:   shop/db-0 (10.0.1.7:5432)",
    ]);
  });

  test("asks nobody about an empty ID", async () => {
    const { code, asked } = await ask("flows explain ", []);
    expect([code, asked]).toEqual([EXIT_USAGE, []]);
  });

  test("fails if no node knows the flow", async () => {
    const { code, stdout, stderr } = await ask("flows explain gone", [WELL]);

    expect([code, stdout, stderr]).toEqual([
      EXIT_FAILED,
      "",
      'No flow has the ID "gone": it may be older than the history\n',
    ]);
  });
});

describe("what is missing", () => {
  test("is said on stderr in words: each loss, and how many", async () => {
    const losses = Object.fromEntries(Object.keys(NO_LOSSES).map((name, index) => [name, index + 1]));
    const { code, stdout, stderr } = await ask("flows", [
      flow(DENIED),
      { losses: { node: "node-1", ...NO_LOSSES, ...losses, withoutCollector: 125_000 } },
    ]);

    expect([code, stdout.includes("n2-9")]).toEqual([EXIT_OK, true]);
    expect(stderr).toMatchInlineSnapshot(`
      "Note: node node-1: the kernel dropped events (1 time): short connections may be missing
      Note: node node-1: the beginning of 2 connections was not seen: their rule is unknown
      Note: node node-1: there were more new connections than flowsPerSecond: 3 connections only in the sums (flows top and graph, without --pod, --label and addresses)
      Note: node node-1: too many connections at a time: 4 connections not followed any more
      Note: node node-1: there were more denied packets than flowDeniedPerSecond: 5 packets without a flow
      Note: node node-1: the agent did not say in time who the ends of 6 flows are: "outside" may be wrong there
      Note: node node-1: 7 flows could not be written to the history
      Note: node node-1: 8 flows could not be written to flowLogFile
      Note: node node-1: nothing was recorded for 2 min 5 s: the agent did not run
      "
    `);
    expect(stderr.trim().split("\n")).toHaveLength(Object.keys(NO_LOSSES).length);
  });

  test("a node that did not answer fails the command, but not what the others answered", async () => {
    for (const words of ["flows", "flows top", "flows graph"]) {
      const { code, stdout, stderr } = await ask(words, [
        words === "flows" ? flow(DENIED) : rollup(),
        { problem: { node: "node-3", message: "it did not answer within 5 s" } },
        WELL,
      ]);
      expect([code, stdout === ""]).toEqual([EXIT_FAILED, false]);
      expect(stderr).toBe("Warning: node node-3: it did not answer within 5 s\n");
    }
  });
});

describe("flows -f", () => {
  /** Stops the command as a user would, when it has printed the last of the texts. */
  async function follow(words: string, answers: readonly FlowAnswer[], last: string): Promise<Asked> {
    const stop = new AbortController();
    const stream = async function* () {
      yield new TextEncoder().encode(linesOf(answers));
      await new Promise(() => {});
    };
    const onStdout = (text: string) => {
      if (text.includes(last)) stop.abort(new Interruption("SIGINT"));
    };
    return ask(words, () => new Response(stream()), { signal: stop.signal, onStdout });
  }

  const begins: FlowRecord = { ...ALLOWED, state: "open", end: START };
  const goesOn: FlowRecord = { ...begins, end: START + 60_000 };

  test("shows a flow when it begins and when it ends, not each update", async () => {
    const { code, stdout } = await follow(
      "flows -f",
      [flow(begins), flow(goesOn), flow(DENIED), flow(DENIED), flow(ALLOWED)],
      "ended",
    );

    expect(code).toBe(EXIT_OK);
    expect(stdout.match(/(open|ended|denied +\d)/g)).toEqual(["open", "denied   3", "ended"]);
    expect(stdout.match(/^TIME/gm)).toHaveLength(1);
  });

  test("of what was before, shows only as many as asked for, though open connections are updated", async () => {
    const other: FlowRecord = { ...goesOn, id: "n1-7" };
    const answers = [flow(goesOn), flow(other), flow({ ...other, state: "ended" }), flow(DENIED)];
    const { stdout } = await follow("flows -f --last 1 -o jsonpath={.id}={.state}", answers, "n2-9");

    expect(stdout.trim().split("\n")).toEqual(["n1-2=open", "n1-7=ended", "n2-9=denied"]);
  });

  test("-o json shows each update, as it comes", async () => {
    const { code, stdout } = await follow("flows -f -o json", [flow(begins), flow(goesOn), flow(ALLOWED)], "ended");

    expect(code).toBe(EXIT_OK);
    expect(
      stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).state),
    ).toEqual(["open", "open", "ended"]);
  });

  test("tells losses while it goes on, again if there are more", async () => {
    const lost = (rulesUnknown: number): FlowAnswer => ({ losses: { node: "node-1", ...NO_LOSSES, rulesUnknown } });
    const { stderr } = await follow("flows -f", [lost(1), lost(1), lost(2), flow(DENIED)], "n2-9");

    expect(stderr.match(/of \d connections?/g)).toEqual(["of 1 connection", "of 2 connections"]);
  });

  test("fails if the node ends the answer: something may happen that is not shown", async () => {
    const { code, stdout, stderr } = await ask("flows -f", ALL);

    expect([code, stdout.includes("n2-9")]).toEqual([EXIT_FAILED, true]);
    expect(stderr).toContain("has ended the connection");
  });
});

describe("text of records", () => {
  const EVIL = "a\u001b]0;x\u0007\u009b31m\r\nb";
  const hostile: FlowRecord = {
    ...ALLOWED,
    id: EVIL,
    node: EVIL,
    source: { ...ALLOWED.source, namespace: EVIL, name: EVIL, address: EVIL, labels: { [EVIL]: EVIL } },
    decisions: [{ point: "workload ingress", verdict: "allow", rule: EVIL }],
    relatedTo: EVIL,
  };
  const losses: FlowAnswer = { losses: { node: EVIL, ...NO_LOSSES, rulesUnknown: 1 } };
  const problem: FlowAnswer = { problem: { node: EVIL, message: EVIL } };
  const evilRollup = rollup({ source: { kind: "pod", namespace: EVIL, name: EVIL, ownerKind: EVIL }, rules: [EVIL] });
  const side: ExplainedFlowSide = {
    direction: "ingress",
    of: EVIL,
    verdict: EVIL,
    reason: EVIL,
    policies: [{ title: EVIL, tier: EVIL, outcome: EVIL }],
  };
  const explanation: FlowAnswer = { explanation: { flow: hostile, sides: [side], missing: [EVIL] } };

  test.each([
    "flows",
    "flows -o wide",
    "flows -o json",
    "flows -o jsonpath={.source.name}{.source.labels}",
    "flows top",
    "flows top --by rule",
    "flows top -o json",
    "flows graph",
    "flows graph -o dot",
    "flows graph -o svg",
    "flows graph -o json",
    "flows explain x",
    "flows explain x -o json",
  ])("%s never sends a control character to the terminal", async (words) => {
    for (const terminalWidth of [200, 80, 40]) {
      const { stdout, stderr } = await ask(
        words,
        [flow(hostile), evilRollup, explanation, losses, problem],
        at(terminalWidth),
      );

      expect(stdout).not.toBe("");
      expect(`${stdout}${stderr}`.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
      for (const line of `${stdout}${stderr}`.split("\n")) expect(line).not.toStartWith("b");
    }
  });
});

describe("who is asked", () => {
  const api = (status: number, text: string, requests: string[] = []) =>
    imitateApi((request) => {
      requests.push(decodeURIComponent(new URL(request.url).pathname + new URL(request.url).search));
      return new Response(text, { status });
    });
  const openKubeLines: AdminSurroundings["openKubeLines"] = (access) => openKubeClient(access, meansWith());

  function kubeconfigFor(url: string): string {
    const path = `${newDirectory()}.kubeconfig`;
    writeFileSync(path, kubeconfigText(url, { token: "secret" }));
    return path;
  }

  test("the cluster, if a kubeconfig is given", async () => {
    const requests: string[] = [];
    using server = api(200, linesOf(ALL), requests);
    const kubeconfig = kubeconfigFor(server.url);
    for (const [words, env] of [
      [`flows --last 1 --kubeconfig ${kubeconfig}`, {}],
      ["flows --last 1", { KUBECONFIG: kubeconfig }],
    ] as const) {
      const { code, stdout, stderr, asked } = await ask(words, [], { env, openKubeLines });
      expect([code, stderr, asked]).toEqual([EXIT_OK, "", []]);
      expect(stdout).toContain("shop/db ingress[1]");
    }
    expect(new Set(requests)).toEqual(new Set([`/apis/${FLOWS_API.group}/v1/flows?last=1`]));
  });

  test("this node with --local, or if nothing says otherwise", async () => {
    using server = api(200, "");
    const kubeconfig = kubeconfigFor(server.url);
    const { asked } = await ask("flows --local", ALL, { env: { KUBECONFIG: kubeconfig }, openKubeLines });
    expect(asked).toHaveLength(1);

    const home = newDirectory();
    await Bun.write(join(home, ".kube/config"), kubeconfigText(server.url, {}));
    const both = await ask("flows", ALL, { env: { HOME: home }, openKubeLines });
    expect([both.asked.length, both.stderr]).toEqual([
      1,
      "Note: these are the flows of this node; for all nodes: --kubeconfig FILE\n",
    ]);
  });

  test("the cluster of the user if this node records nothing", async () => {
    using server = api(200, linesOf(ALL));
    const home = newDirectory();
    await Bun.write(join(home, ".kube/config"), kubeconfigText(server.url, {}));
    const env = { HOME: home, [`${identity.environmentPrefix}RUN_DIRECTORY`]: newDirectory() };
    const { code, stdout, stderr } = await runInside(["flows"], { env, openKubeLines });

    expect([code, stdout.includes("n2-9")]).toEqual([EXIT_OK, true]);
    expect(stderr).toBe("Note: this node is not asked: it records no flows; these are the flows of the cluster\n");
  });

  test("nobody, if flows are off: it says how to switch them on", async () => {
    const env = { [`${identity.environmentPrefix}RUN_DIRECTORY`]: newDirectory() };
    const { code, stderr } = await runInside(["flows"], { env });

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain(`patch nodeagentconfiguration default --patch '{"spec": {"flows": "Enabled"}}'`);

    using server = api(404, "404 page not found");
    const cluster = await runInside(["flows", "--kubeconfig", kubeconfigFor(server.url)], { openKubeLines });
    expect(cluster.code).toBe(EXIT_FAILED);
    expect(cluster.stderr).toContain("kubectl patch installation default");
  });

  test("the API's own message, if the user has no right", async () => {
    const message = `flows.${FLOWS_API.group} is forbidden: User "jane" cannot list resource "flows"`;
    using server = api(403, JSON.stringify({ kind: "Status", reason: "Forbidden", message }));
    const { code, stderr } = await runInside(["flows", "--kubeconfig", kubeconfigFor(server.url)], { openKubeLines });

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain(message);
    expect(stderr).toContain(`bind ClusterRole "${FLOW_READER}"`);
    expect(stderr).toContain("-n NAMESPACE");
  });

  test("the API server, which says that nothing serves flows yet: what to do", async () => {
    using server = api(503, "service unavailable");
    const { code, stderr } = await runInside(["flows", "--kubeconfig", kubeconfigFor(server.url)], { openKubeLines });

    expect([code, stderr]).toEqual([EXIT_FAILED, expect.stringContaining("switched on a moment ago, try again")]);
  });

  test("the API of one namespace, if the user may read no other", async () => {
    const requests: string[] = [];
    using server = imitateApi((request) => {
      const { pathname, search } = new URL(request.url);
      requests.push(`${pathname}${search}`);
      const isAllowed = pathname.includes("/namespaces/shop/");
      const message = { kind: "Status", reason: "Forbidden", message: "flows is forbidden" };
      return isAllowed ? new Response(linesOf(ALL)) : new Response(JSON.stringify(message), { status: 403 });
    });
    const kubeconfig = kubeconfigFor(server.url);
    const { code } = await runInside(["flows", "-n", "shop", "--kubeconfig", kubeconfig], { openKubeLines });
    const other = await runInside(["flows", "-n", "other", "--kubeconfig", kubeconfig], { openKubeLines });

    expect([code, other.code]).toEqual([EXIT_OK, EXIT_FAILED]);
    expect(other.stderr).toContain("flows is forbidden");
    const path = `/apis/${FLOWS_API.group}/v1`;
    expect(requests.slice(0, 2)).toEqual([
      `${path}/flows?last=20&namespace=shop`,
      `${path}/namespaces/shop/flows?last=20&namespace=shop`,
    ]);
  });

  test("the cluster, with the parameter that makes the API server wait for more than a minute", async () => {
    const requests: string[] = [];
    using server = api(200, linesOf(ALL), requests);
    await runInside(["flows", "-f", "--kubeconfig", kubeconfigFor(server.url)], { openKubeLines });

    expect(requests).toEqual([`/apis/${FLOWS_API.group}/v1/flows?last=20&watch=true`]);
  });

  test("the cluster about a flow that it does not know: its own message", async () => {
    const message = { kind: "Status", reason: "NotFound", message: "no node knows the flow" };
    using server = api(404, JSON.stringify(message));
    const { code, stderr } = await runInside(["flows", "explain", "x", "--kubeconfig", kubeconfigFor(server.url)], {
      openKubeLines,
    });

    expect([code, stderr]).toEqual([EXIT_FAILED, "error: Cannot list explanation: no node knows the flow\n"]);
  });

  test("a socket that nobody serves, a refusal and a line that is none are errors", async () => {
    const run = newDirectory();
    const node = imitateNode(run, () => ALL);
    node[Symbol.dispose]();
    await Bun.write(join(run, "flows.sock"), "");
    expect(await runInside(["flows"], { env: node.env })).toMatchObject({
      code: EXIT_FAILED,
      stderr: expect.stringContaining("does not answer"),
    });

    const refused = await ask("flows", () => new Response('{"message":"Cannot use \\"x\\""}', { status: 400 }));
    expect([refused.code, refused.stderr]).toEqual([EXIT_FAILED, expect.stringContaining('Cannot use "x"')]);

    const other = await ask("flows", () => new Response('{"flow":{}}\n'));
    expect([other.code, other.stderr]).toEqual([EXIT_FAILED, expect.stringContaining("is not a line of an answer")]);
  });
});
