/** Global options may also be given before the command, as in kubectl: `-o json get pools`. */

import { DATASTORE_OPTIONS } from "../datastore/options.ts";
import { NAMESPACE_OPTION } from "../resources/options.ts";
import { readOption } from "./arguments.ts";
import { COMMON_OPTIONS } from "./command.ts";
import { LOG_LEVEL_OPTION } from "./option.ts";

/** Whether the command accepts one of them is decided when its own arguments are parsed. */
const GLOBAL_OPTIONS = [...COMMON_OPTIONS, ...DATASTORE_OPTIONS, NAMESPACE_OPTION];

export interface LeadingOptions {
  readonly leading: readonly string[];
  readonly rest: readonly string[];
}

/** Before a command `-l` is the level of the log, as in the peer's tool; after it the selector, as in kubectl. */
function longName(word: string): string {
  if (!word.startsWith("-l") || word.startsWith("--")) return word;
  const value = word.slice("-l".length).replace(/^=/, "");
  return `--${LOG_LEVEL_OPTION.name}${value === "" ? "" : `=${value}`}`;
}

/** Splits off the options before the first word that is not one; `ends` are words that look like options, but act as commands. */
export function splitLeadingOptions(args: readonly string[], ends: ReadonlySet<string>): LeadingOptions {
  let count = 0;
  for (;;) {
    const word = args[count];
    if (word === undefined || word === "-" || word === "--" || !word.startsWith("-") || ends.has(word)) break;
    const { option, attached } = readOption(longName(word), GLOBAL_OPTIONS);
    count += option.value !== undefined && attached === undefined ? 2 : 1;
  }
  return { leading: args.slice(0, count).map(longName), rest: args.slice(count) };
}
