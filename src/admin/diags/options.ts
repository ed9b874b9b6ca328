import type { Option } from "../main/option.ts";

export const ARCHIVE_OPTION: Option = {
  name: "archive",
  value: "FILE",
  summary: "File to write (default: diags-TIME.tar.gz in the current directory)",
};

export const USUAL_LOGS = 5;

export const USUAL_PARALLELISM = 10;
