import { isDuration, millisecondsOf } from "../../model/duration.ts";
import { quoted } from "../../quote.ts";
import { type Given, UsageError } from "../main/command.ts";
import type { Option } from "../main/option.ts";

const DEFAULT = "5m";

export const TIMEOUT_OPTION: Option = {
  name: "timeout",
  value: "DURATION",
  summary: `How long to wait (default ${DEFAULT})`,
};

export function timeoutOf({ values }: Given): number {
  const timeout = values.get(TIMEOUT_OPTION.name) ?? DEFAULT;
  if (!isDuration(timeout)) throw new UsageError(`${quoted(timeout)} is not a duration; use for example "90s" or "5m"`);
  return millisecondsOf(timeout);
}
