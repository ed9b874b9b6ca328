import type { Option } from "./option.ts";

export const LOG_LEVEL_OPTION: Option = {
  name: "log-level",
  value: "LEVEL",
  oneOf: ["debug", "info", "warn", "error", "fatal", "panic"],
  summary:
    "debug: also log every request to the datastore and the API, and which datastore is used; all others: only warnings and errors",
};
