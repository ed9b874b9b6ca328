import { describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";

describe("helpText()", () => {
  const help = async (words: string, terminalWidth?: number) =>
    (await runInside([...words.split(" "), "--help"], { terminalWidth })).stdout;
  const wordsOf = (text: string) => text.split(/\s+/).filter((word) => word !== "");
  /** What users type must be on one line. */
  const prose = (text: string) => text.replace(/^Usage:.*$|^Examples:[\s\S]*/gm, "");

  test.each([40, 60, 80, 100])("fits a terminal of %d columns, with the same words", async (width) => {
    for (const words of ["get", "delete", "ipam check", "datastore"]) {
      const text = await help(words, width);
      const longest = Math.max(
        ...prose(text)
          .split("\n")
          .map((line) => line.length),
      );

      expect(longest).toBeLessThanOrEqual(width);
      expect(wordsOf(text)).toEqual(wordsOf(await help(words)));
    }
  });

  test("names the command that lists the options of the datastore, and does not repeat them", async () => {
    const text = await help("get");
    const { code, stdout } = await runInside(["options"]);

    expect(text).toContain('Run "vendorctl options" for the options that select the datastore.\n');
    expect(text).not.toContain("--etcd-endpoints");
    expect(await help("config check")).not.toContain("vendorctl options");
    expect(code).toBe(0);
    expect(stdout).toMatch(/--datastore-type TYPE +Datastore type: etcdv3 \(default\), embedded, or orchestrator/);
    expect(stdout).toContain("--etcd-endpoints URLS");
    expect(stdout).toContain("-o, --output FORMAT");
    const json = JSON.parse((await runInside(["options", "-o", "json"])).stdout);
    expect(json.datastore.map(({ name }: { name: string }) => name)).toContain("etcd-endpoints");
  });

  test("keeps the second column aligned", async () => {
    expect(await help("get", 80)).toContain(
      [
        "  -f, --filename FILE        File or directory with YAML or JSON documents, or -",
        "                             for standard input; can be repeated",
        "  -R, --recursive            Also read the subdirectories of the directories",
        "                             given with -f",
        "",
      ].join("\n"),
    );
  });

  test("puts the second column below the first if there is not enough room beside it", async () => {
    expect(await help("get", 40)).toContain(
      [
        "  -n, --namespace NAMESPACE",
        "        Namespace of namespaced",
        "        resources (default: default)",
        "",
      ].join("\n"),
    );
  });

  test("does not wrap if the width is unknown", async () => {
    expect(await help("get")).toContain("standard input; can be repeated\n");
    expect(await help("get", 0)).toBe(await help("get"));
  });
});
