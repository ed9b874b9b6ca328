import { verifyRun } from "../../upgrade/engine/verify.ts";
import { type Command, EXIT_FAILED, EXIT_OK, wantsJson } from "../main/command.ts";
import { paint } from "../terminal/paint.ts";
import { CONTEXT_OPTION } from "./options.ts";
import { withReadingRun } from "./site.ts";

export const upgradeVerify: Command = {
  kind: "command",
  name: "verify",
  summary: "Check that every step of the upgrade is done and right",
  description: "Reads only, and may be called at any time. The exit code is 1 if something is wrong.",
  options: [CONTEXT_OPTION],
  needsDatastore: true,
  versionCheck: "refuse",
  examples: [{ command: "upgrade verify", does: "Is the cluster as the upgrade left it?" }],
  async run(context, given) {
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
  },
};
