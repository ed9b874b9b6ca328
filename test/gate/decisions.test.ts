import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const FOLDER = join(import.meta.dir, "../../docs/decisions");
const ROW = /^\| \d{4}-\d\d-\d\d \| \[(?<title>.+)\]\((?<file>[^)]+)\) \| (?:in force|replaced by \[.+\]\(.+\)) \|$/;

test("every decision is in the index, with its title, date and state", () => {
  const files = readdirSync(FOLDER).filter((file) => file !== "README.md");
  const titleOf = (file: string) => {
    const [first = ""] = readFileSync(join(FOLDER, file), "utf8").split("\n");
    return first.replace(/^# (?:\d+\. )?/, "");
  };
  const rows = readFileSync(join(FOLDER, "README.md"), "utf8").split("\n").slice(6).filter(Boolean);
  const listed = rows.map((row) => ROW.exec(row)?.groups ?? { title: row, file: "" });

  expect(listed.toSorted((left, right) => String(left["file"]).localeCompare(String(right["file"])))).toEqual(
    files.toSorted((left, right) => left.localeCompare(right)).map((file) => ({ title: titleOf(file), file })),
  );
});
