import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { paint } from "./paint.ts";
import { fitColumns, formatRows, formatTable, TableWriter } from "./table.ts";

const PLAIN = paint({ env: {}, isTerminal: false });
const at = (width: number) => ({ paint: PLAIN, width });

describe("formatTable()", () => {
  test("makes each column as wide as its widest cell, without trailing spaces", () => {
    expect(
      formatTable(
        ["A", "B"],
        [
          ["long", ""],
          ["", "x"],
        ],
      ),
    ).toBe("A      B\nlong\n       x\n");
  });

  test("escapes line breaks and control characters", () => {
    expect(formatTable(["A", "B"], [["a\nb\tc", "\u001b[31m\u009bé"]])).toBe(
      "A         B\na\\nb\\tc   \\u001b[31m\\u009bé\n",
    );
  });

  test("paints the header, and nothing else", () => {
    const page = { paint: paint({ env: {}, isTerminal: true }), width: 80 };

    expect(formatTable(["A"], [["b"]], page)).toBe("\u001b[1mA\u001b[0m\nb\n");
  });
});

describe("formatRows()", () => {
  const rows = [
    ["1.", "tier default", "NetworkPolicy shop/db"],
    ["2.", "tier last", "GlobalNetworkPolicy all", "preDNAT"],
  ];

  test("has columns if these fit", () => {
    expect(formatRows(rows, 54)).toEqual([
      "1.   tier default   NetworkPolicy shop/db",
      "2.   tier last      GlobalNetworkPolicy all   preDNAT",
    ]);
  });

  test("otherwise one cell below the other, and breaks what is longer than a line", () => {
    expect(formatRows(rows, 20)).toEqual([
      ...["1. tier default", "  NetworkPolicy", "  shop/db"],
      ...["2. tier last", "  GlobalNetworkPolic", "  y", "  all", "  preDNAT"],
    ]);
  });
});

describe("a table on a terminal", () => {
  const endpoint = `host1-cni-${"0123456789abcdef".repeat(4)}-eth0`;
  const header = ["NAMESPACE", "NAME", "WORKLOAD", "NODE", "NETWORKS", "INTERFACE"];
  const rows = [["default", endpoint, "web", "host1", "10.66.0.132/32", "vend0123456789a"]];

  test("is whole if it fits", () => {
    expect(formatTable(header, rows, at(200))).toBe(formatTable(header, rows));
  });

  test("shortens the longest cells in the middle", () => {
    expect(formatTable(header, rows, at(80))).toBe(
      [
        "NAMESPACE   NAME             WORKLOAD   NODE    NETWORKS         INTERFACE",
        "default     host1-c…f-eth0   web        host1   10.66.0.132/32   vend0123456789a",
        "",
      ].join("\n"),
    );
  });

  test("leaves out the last columns if that is not enough, and says so", () => {
    expect(formatTable(header, rows, at(40))).toBe(
      ["NAMESPACE   NAME              WORKLOAD …", "default     host1-c…ef-eth0   web", ""].join("\n"),
    );
  });

  test("leaves out columns that are not needed before the last ones, and only as many as it must", () => {
    const leaveOutFirst = ["INTERFACE", "NAME", "NODE"];
    const narrow = (width: number) => formatTable(header, rows, at(width), { leaveOutFirst });

    expect(narrow(200)).toBe(formatTable(header, rows));
    expect(narrow(60).split("\n")[0]).toBe("NAMESPACE   WORKLOAD   NODE    NETWORKS …");
    expect(narrow(40)).toBe(
      ["NAMESPACE   WORKLOAD   NETWORKS …", "default     web        10.66.0.132/32", ""].join("\n"),
    );
    for (const width of [80, 60, 40]) {
      for (const line of narrow(width).split("\n")) expect(line.length).toBeLessThanOrEqual(width);
    }
  });

  test("wraps a last column of sentences between words", () => {
    const problem = "the address 10.0.0.1 belongs to a container that does not exist any more";

    expect(formatTable(["STEP", "PROBLEM"], [["one", problem]], at(40))).toBe(
      [
        "STEP   PROBLEM",
        "one    the address 10.0.0.1 belongs to a",
        "       container that does not exist any",
        "       more",
        "",
      ].join("\n"),
    );
  });

  test("breaks a long word of a sentence, and loses nothing of it", () => {
    const word = fc.stringMatching(/^[a-z/.-]{1,60}$/);
    fc.assert(
      fc.property(fc.array(word, { minLength: 2, maxLength: 12 }), fc.integer({ min: 12, max: 60 }), (words, width) => {
        const [, ...lines] = formatTable(["S", "PROBLEM"], [["1", words.join(" ")]], at(width))
          .trimEnd()
          .split("\n");

        expect(lines.join("").replace(/^1|PROBLEM:|\s/g, "")).toBe(words.join(""));
        for (const line of lines) expect(line.length).toBeLessThanOrEqual(width);
      }),
    );
  });

  test("writes a last column of sentences below the row if it does not fit beside it", () => {
    const row = ["default", "a-long-name-of-a-pod", "host1", "the address is not in a pool; see /etc/cni/net.d"];

    expect(formatTable(["NAMESPACE", "NAME", "NODE", "PROBLEM"], [row, ["default", "b", "host1", ""]], at(40))).toBe(
      [
        "NAMESPACE   NAME                   NODE",
        "default     a-long-name-of-a-pod   host1",
        "  PROBLEM: the address is not in a pool;",
        "  see /etc/cni/net.d",
        "default     b                      host1",
        "",
      ].join("\n"),
    );
  });

  test("never shortens addresses, but names and handles", () => {
    const handle = "k8s-pod-network.0123456789abcdef01234567";
    const address = "fd00:1234:5678:9abc:def0:1234:5678:9abc/128";

    expect(formatTable(["ADDRESS", "HANDLE"], [[address, handle]], at(60))).toBe(
      [`ADDRESS${" ".repeat(39)}HANDLE`, `${address}   k8s-pod…234567`, ""].join("\n"),
    );
    expect(formatTable(["ADDRESS", "HANDLE"], [[address, handle]], at(40))).toBe(`ADDRESS …\n${address}\n`);
  });

  test("is whole without a header, which could not say that columns are missing", () => {
    expect(new TableWriter(header, { hasHeader: false, page: at(40) }).write(rows)).toContain(endpoint);
    expect(new TableWriter(header, { hasHeader: false, page: at(40) }).write(rows)).toContain("vend0123456789a");
  });

  test("keeps the columns of the first part in the next", () => {
    const table = new TableWriter(["NAME", "NODE"], { page: at(20) });

    expect(table.write([["web", "h"]])).toBe("NAME   NODE\nweb    h\n");
    expect(table.write([["a".repeat(30), "h"]])).toBe("aaaaaa…aaaaaa   h\n");
    expect(table.write([["web", "h"]])).toBe("web             h\n");
  });
});

describe("fitColumns()", () => {
  test("never exceeds the page, and keeps a first column", () => {
    const column = fc.nat(100).chain((width) => fc.record({ width: fc.constant(width), least: fc.nat(width) }));
    fc.assert(
      fc.property(
        fc.array(column, { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 5, max: 200 }),
        (columns, page) => {
          const widths = fitColumns(columns, page);
          const more = widths.length < columns.length ? 2 : 0;

          expect(widths.length).toBeGreaterThan(0);
          expect(widths.reduce((sum, width) => sum + width, 3 * (widths.length - 1)) + more).toBeLessThanOrEqual(page);
          for (const [index, width] of widths.entries()) expect(width).toBeLessThanOrEqual(columns[index]?.width ?? 0);
        },
      ),
    );
  });
});
