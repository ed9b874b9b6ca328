import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { formatLine, type LogEntry } from "./line.ts";

const ENTRY: LogEntry = {
  time: new Date("2026-11-15T03:22:14.123Z"),
  level: "INFO",
  processId: 4711,
  component: "ipam",
  message: "Assigned an address",
  fields: {},
};

describe("formatLine()", () => {
  test("writes time, level, process ID, component, message, and the fields sorted by name", () => {
    const fields = { node: "one", address: "10.0.0.1", pools: ["a", "b"], attempt: 2, absent: undefined };

    expect(formatLine({ ...ENTRY, fields })).toBe(
      '2026-11-15 03:22:14.123 [INFO][4711] ipam: Assigned an address address="10.0.0.1" attempt="2" node="one" pools="a,b"\n',
    );
  });

  test("escapes line breaks and quotes", () => {
    const line = formatLine({ ...ENTRY, message: "a\nb\u2028c\u001b[31m", fields: { text: 'x"y\\z\r\n\t' } });

    expect(line).toEndWith('ipam: a\\nb\\u2028c\\u001b[31m text="x\\"y\\\\z\\r\\n\\t"\n');
  });

  test("is one line for any input", () => {
    const anyText = fc.string({ unit: "binary" });
    fc.assert(
      fc.property(anyText, anyText, anyText, (message, name, value) => {
        const line = formatLine({ ...ENTRY, message, fields: { [name]: value } });
        expect(line.split(/[\n\r\u0085\u2028\u2029]/)).toHaveLength(2);
        expect(line).toEndWith("\n");
      }),
    );
  });

  test("hides secrets in the message and in fields", () => {
    const line = formatLine({
      ...ENTRY,
      message: "reached https://root:MARK@host:1 with Bearer MARK",
      fields: { token: "MARK", url: "http://u:MARK@h", key: "-----BEGIN KEY-----\nMARK\n-----END KEY-----" },
    });

    expect(line).not.toContain("MARK");
  });
});
