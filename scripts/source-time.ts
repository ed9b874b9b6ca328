import { run } from "./run.ts";

/** The time of files in packages and images: as given (reproducible-builds.org), else that of the commit. */
export async function sourceTime(): Promise<number> {
  const given = process.env["SOURCE_DATE_EPOCH"] ?? "";
  if (/^\d+$/.test(given)) return Number(given);
  const { code, output } = await run(["git", "log", "-1", "--format=%ct"]);
  return code === 0 ? Number(output) : 0;
}

/** Files that differ from the commit whose time is used, as git names them. None outside a repository, or if the time is given. */
export async function uncommittedFiles(directory = "."): Promise<readonly string[]> {
  if (/^\d+$/.test(process.env["SOURCE_DATE_EPOCH"] ?? "")) return [];
  const { code, output } = await run(["git", "-C", directory, "status", "--porcelain"]);
  const lines = output.split("\n").map((line) => line.trim());
  return code === 0 ? lines.filter((line) => line !== "") : [];
}
