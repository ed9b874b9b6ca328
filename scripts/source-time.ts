import { run } from "./run.ts";

/** The time of files in packages and images: as given (reproducible-builds.org), else that of the commit. */
export async function sourceTime(): Promise<number> {
  const given = process.env["SOURCE_DATE_EPOCH"] ?? "";
  if (/^\d+$/.test(given)) return Number(given);
  const { code, output } = await run(["git", "log", "-1", "--format=%ct"]);
  return code === 0 ? Number(output) : 0;
}
