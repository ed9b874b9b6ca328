import { describe, expect, test } from "bun:test";
import { type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { identity } from "../../identity.ts";
import type { Expression } from "../../linux/nftables/expression.ts";
import type { TraceEvent } from "../../linux/nftables/trace.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../command.ts";

const MARKING = { family: "inet", name: "marking" } as const;
const IPV4 = Uint8Array.fromHex("4500003c000040004006000a0a0000050a000006");

/** A tracer that reports these events in its first round. */
function tracing(events: readonly TraceEvent[]) {
  const opened: (readonly (readonly Expression[])[])[] = [];
  let isClosed = false;
  let left = events;
  const openTracer: AdminSurroundings["openTracer"] = async (alternatives) => {
    opened.push(alternatives);
    return {
      table: MARKING,
      read() {
        const now = left;
        left = [];
        return { events: now, hasLost: false };
      },
      rulesOf: (_, chain) => [{ chain, handle: 9n, expressions: [], comment: "shop/db ingress 0" }],
      close: () => {
        isClosed = true;
      },
    };
  };
  const run = (words: string) => runInside(words.split(" "), { openTracer });
  return { run, opened, isClosed: () => isClosed };
}

const DROPPED: readonly TraceEvent[] = [
  { packet: 1, kind: "rule", table: MARKING, chain: "prerouting", handle: 4n, networkHeader: IPV4 },
  {
    packet: 1,
    kind: "rule",
    table: { family: "inet", name: identity.policyTable },
    chain: "pi_x",
    handle: 9n,
    verdict: "drop",
  },
];

describe("policy trace", () => {
  test("prints the packet and the rule that dropped it, and removes its table", async () => {
    const { run, isClosed } = tracing(DROPPED);
    const { code, stdout } = await run("policy trace --to 10.0.0.6 --timeout 1");
    expect([code, stdout]).toEqual([
      EXIT_OK,
      '03:04:05.000 TCP 10.0.0.5 -> 10.0.0.6: dropped\n  by NetworkPolicy "shop/db", ingress rule 1 (spec.ingress[0])\n',
    ]);
    expect(isClosed()).toBe(true);
  });

  test("fails if it sees nothing, naming what it waited for", async () => {
    const { run } = tracing([]);
    const { code, stderr } = await run("policy trace --from 10.0.0.5 --to 10.0.0.6 --port 80 --timeout 1");
    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("No packet was seen within 1 s (IPv4 TCP from 10.0.0.5 to 10.0.0.6 port 80)");
  });

  test("matches only the family of an address, and a list of conditions for each family of none", async () => {
    const { run, opened } = tracing([]);
    await run("policy trace --to fd00::1 --protocol icmp --timeout 1");
    await run("policy trace --to 10.0.0.1 --timeout 1");
    expect(opened.map((alternatives) => alternatives.length)).toEqual([1, 1]);
  });

  test.each([
    ["policy trace", '"--from" or "--to" is missing'],
    ["policy trace --from 10.0.0.1 --to fd00::1", "no addresses of the same IP version"],
    ["policy trace --to 10.0.0.1 --protocol icmp --port 80", "--protocol tcp, udp or sctp"],
    ["policy trace --to 10.0.0.1 --port http", '"--port" is "http"'],
    ["policy trace --to 10.0.0.1 --timeout 0", '"--timeout" is "0"'],
  ])("%s is refused", async (words, message) => {
    const { code, stderr } = await tracing([]).run(words);
    expect([code, stderr]).toEqual([EXIT_USAGE, expect.stringContaining(message)]);
  });
});

describe("policy counters", () => {
  const count = (comment: string, verdict: "accept" | "drop", packets: number) => {
    return { chain: "c", comment, verdict, packets, bytes: packets * 60 };
  };
  const policyCounts = [
    count("tier default ingress default", "drop", 2),
    count("shop/db ingress 10", "drop", 0),
    count("shop/db ingress 2", "accept", 1),
    count("shop/db ingress 2", "accept", 3),
    count("global egress 0", "drop", 5),
  ];
  const rowsOf = async (words: string) => {
    const { code, stdout } = await runInside(words.split(" "), { policyCounts });
    return [
      code,
      ...stdout
        .trimEnd()
        .split("\n")
        .map((line) => line.split(/ {2,}/)),
    ];
  };

  test("lists the rules of policies in order, then what else was dropped, both families together", async () => {
    expect(await rowsOf("policy counters")).toEqual([
      EXIT_OK,
      ["POLICY", "DIRECTION", "RULE", "ACTION", "PACKETS", "BYTES"],
      ["global", "egress", "1", "Deny", "5", "300"],
      ["shop/db", "ingress", "3", "Allow", "4", "240"],
      ["shop/db", "ingress", "11", "Deny", "0", "0"],
      ['the end of tier "default": no ingress rule of its policies matches', "Deny", "2", "120"],
    ]);
  });

  test("shows one policy, or only what was dropped", async () => {
    expect((await rowsOf("policy counters shop/db")).slice(2)).toHaveLength(2);
    expect((await rowsOf("policy counters --dropped")).slice(2)).toHaveLength(2);
  });

  test("fails for a policy without rules here, and for a host without the table", async () => {
    expect((await runInside(["policy", "counters", "shop/web"], { policyCounts })).code).toBe(EXIT_FAILED);
    const without = await runInside(["policy", "counters"]);
    expect([without.code, without.stderr]).toEqual([
      EXIT_FAILED,
      expect.stringContaining(`${identity.nodeAgent} does not run`),
    ]);
  });
});
