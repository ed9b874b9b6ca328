import { verifyRun } from "../../upgrade/engine/verify.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, wantsJson } from "../main/command.ts";
import type { Clock, DatastoreAccess, Host } from "../main/context.ts";
import { paint } from "../terminal/paint.ts";
import { withReadingRun } from "./site.ts";

export async function run(context: DatastoreAccess & Host & Clock, given: Given): Promise<ExitCode> {
  const results = await withReadingRun(context, given, (run) => verifyRun(run));
  const { green, red } = paint(context);
  if (wantsJson(given)) context.stdout(`${JSON.stringify({ steps: results }, undefined, 2)}\n`);
  else {
    for (const { step, problems } of results) {
      context.stdout(`${problems.length === 0 ? green("ok     ") : red("problem")} ${step}\n`);
      for (const problem of problems) context.stdout(`        ${problem}\n`);
    }
  }
  return results.every(({ problems }) => problems.length === 0) ? EXIT_OK : EXIT_FAILED;
}
