/** `spec.logging`: the log of the plugin on every node. */
import * as v from "valibot";
import { wholeNumber } from "./fields.ts";

const NOT_A_SIZE = 'is not a size of a file; use for example "100Mi" (Mi or Gi, at least 1Mi)';
const NOT_DAYS = "is not a number of days; use a whole number of at least 1";
const NOT_FILES = "is not a number of files; use a whole number of at least 1";

const NOT_A_FILE =
  'is not the path of a file; use an absolute path, without spaces and the parts "." and "..", or "None" for no log file';

/** As `logFilePath`: nothing is written to a file. */
export const NO_LOG_FILE = "None";

const SIZE = /^([1-9][0-9]*)(Mi|Gi)$/;

/** Visible ASCII without slash and, at the beginning of a part, without dot. */
const [CHARACTER, FIRST] = ["[!-.0-~]", "[!-\\-0-~]"];
const PART = `(${FIRST}${CHARACTER}*|\\.${FIRST}${CHARACTER}*|\\.\\.${CHARACTER}+)`;
const LOG_FILE = new RegExp(`^(${NO_LOG_FILE}|(/${PART})+)$`);

export const loggingSchema = v.object({
  cni: v.exactOptional(
    v.object({
      logSeverity: v.exactOptional(v.picklist(["Error", "Warning", "Info", "Debug"])),
      logFilePath: v.exactOptional(v.pipe(v.string(), v.regex(LOG_FILE, NOT_A_FILE))),
      logFileMaxSize: v.exactOptional(v.pipe(v.string(), v.regex(SIZE, NOT_A_SIZE))),
      logFileMaxAgeDays: v.exactOptional(wholeNumber(NOT_DAYS, 1, 36_500)),
      logFileMaxCount: v.exactOptional(wholeNumber(NOT_FILES, 1, 10_000)),
    }),
  ),
});

export function megabytesOf(size: string): number {
  const [, count = "0", unit = "Mi"] = SIZE.exec(size) ?? [];
  return Number(count) * (unit === "Gi" ? 1024 : 1);
}
