/** Opens the log that a network config describes, and logs the warnings about the config itself. */
import type { DecodedConfig } from "../config/decode.ts";
import { unknownKeyText } from "../config/unknown-key.ts";
import { type Log, type LogSurroundings, openLog } from "./log.ts";

type UsableConfig = Extract<DecodedConfig, { readonly ok: true }>;

export function openConfigLog({ config, warnings, unknownKeys }: UsableConfig, surroundings: LogSurroundings): Log {
  const log = openLog(config.log, surroundings);
  for (const { message } of warnings) log.warning(message);
  // Building these messages is expensive: only if they are logged.
  if (config.log.level === "DEBUG") for (const path of unknownKeys) log.debug(unknownKeyText(path));
  return log;
}
