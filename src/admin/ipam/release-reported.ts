/** `ipam release --from-report`, as a command: reads the reports, and prints what was released. */
import { type Context, EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../command.ts";
import { withDatastore } from "../datastore/open.ts";
import { readReports, releaseFromReports } from "./release-from-reports.ts";

export async function releaseReported(context: Context, given: Given): Promise<ExitCode> {
  if (given.lists.has("ip") || given.values.has("handle")) {
    throw new UsageError("--from-report cannot be combined with --ip or --handle");
  }
  const reports = await readReports(context, given.lists.get("from-report") ?? []);
  const isForced = given.switches.has("force");
  const result = await withDatastore(context, given, (store) =>
    releaseFromReports(store, context, { reports, isForced }),
  );
  const { released, kept, handles } = result;
  if (wantsJson(given)) context.stdout(`${JSON.stringify(result, undefined, 2)}\n`);
  else {
    for (const address of released) context.stdout(`Released ${address}\n`);
    for (const handle of handles) context.stdout(`Removed handle ${handle}\n`);
    for (const { address, reason } of kept) context.stdout(`Kept ${address}: ${reason}\n`);
    if (released.length + handles.length + kept.length === 0) context.stdout("Nothing to release: nothing is leaked\n");
  }
  return EXIT_OK;
}
