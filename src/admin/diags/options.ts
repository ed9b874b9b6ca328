import { isDuration, millisecondsOf } from "../../model/duration.ts";
import { quoted } from "../../quote.ts";
import { type Given, UsageError } from "../main/command.ts";
import type { Option } from "../main/option.ts";

export const ARCHIVE_OPTION: Option = {
  name: "archive",
  value: "FILE",
  summary: "File to write (default: diags-TIME.tar.gz in the current directory)",
};

/** What the API and a node give at most. */
export const MOST_FLOWS = "10000";

/** Flows say who talks to whom: without it none is collected. */
export const FLOWS_OPTION: Option = {
  name: "flows",
  value: "DURATION",
  summary: `Also the last ${MOST_FLOWS} flows of this time, such as 10m (default: none, only what is missing in them)`,
};

/** Milliseconds; `undefined`: no flows. Throws `UsageError`. */
export function flowsTime({ values }: Given): number | undefined {
  const text = values.get(FLOWS_OPTION.name);
  if (text === undefined) return undefined;
  if (isDuration(text) && millisecondsOf(text) > 0) return millisecondsOf(text);
  throw new UsageError(`"--${FLOWS_OPTION.name}" is ${quoted(text)}: must be a duration such as 5m or 2h`);
}

export const USUAL_LOGS = 5;

export const USUAL_PARALLELISM = 10;
