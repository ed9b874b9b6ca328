/** The log that a network config asks for. It begins with what is to be said of the config itself. */
import type { DecodedConfig } from "../config/decode.ts";
import { unknownKeyText } from "../config/unknown-key.ts";
import { type Log, type LogSurroundings, openLog } from "./log.ts";

type UsableConfig = Extract<DecodedConfig, { readonly ok: true }>;

export function openConfigLog({ config, warnings, unknownKeys }: UsableConfig, surroundings: LogSurroundings): Log {
  const log = openLog(config.log, surroundings);
  for (const { message } of warnings) log.warning(message);
  // The words cost a search of their own: only for who reads them.
  if (config.log.level === "DEBUG") for (const path of unknownKeys) log.debug(unknownKeyText(path));
  return log;
}
