import { describe, expect, test } from "bun:test";
import { manualPage } from "../../scripts/man/manual-page.ts";
import { usageParts } from "../../scripts/man/usage-page.ts";

const USAGE = `Usage: tool [start] | -h

The tool: does
things.

  start         begin, and go on
                until it ends
  -h, --help    print this help

Environment:
  TOOL_PATH     where it looks

More of it.`;

describe("manualPage()", () => {
  test("makes a page of the help of a program", () => {
    const parts = usageParts(USAGE);

    expect(manualPage({ name: "tool", section: 8, source: "Tool v1", summary: "does things", parts })).toBe(
      [
        '.TH "TOOL" 8 "" "Tool v1"',
        ".nh",
        ".ad l",
        ".SH NAME",
        "tool \\- does things",
        '.SH "SYNOPSIS"',
        ".PP",
        ".nf",
        "tool [start] | \\-h",
        ".fi",
        '.SH "DESCRIPTION"',
        ".PP",
        "The tool: does things.",
        ".PP",
        "More of it.",
        '.SH "OPTIONS"',
        ".TP",
        "\\fBstart\\fR",
        "begin, and go on until it ends",
        ".TP",
        "\\fB\\-h, \\-\\-help\\fR",
        "print this help",
        '.SH "ENVIRONMENT"',
        ".TP",
        "\\fBTOOL_PATH\\fR",
        "where it looks",
        "",
      ].join("\n"),
    );
  });

  test("prints what would be a request, an escape or an end of a string", () => {
    const blocks = [
      { kind: "subheading", text: 'a "b"' },
      { kind: "paragraph", text: ".conf and 'x'" },
      { kind: "lines", lines: ["", "'quoted' \\n"] },
    ] as const;
    const page = manualPage({ name: "t", section: 1, source: "", summary: "", parts: [{ heading: "H", blocks }] });

    expect(page).toEndWith(
      ['.SS "a \\(dqb\\(dq"', ".PP", "\\&.conf and 'x'", ".PP", ".nf", "\\&", "\\&'quoted' \\en", ".fi", ""].join("\n"),
    );
  });
});
