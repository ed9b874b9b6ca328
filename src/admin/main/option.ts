export interface Option {
  /** Long name without dashes: `effective`. */
  readonly name: string;
  /** One letter: `o` for `-o`. */
  readonly letter?: string;
  /** The placeholder of the value in help (`FILE` completes to file names); absent for a switch. */
  readonly value?: string;
  /** The only allowed values. */
  readonly oneOf?: readonly string[];
  /** Allowed values that need an argument: `jsonpath` for `jsonpath=TEMPLATE`. */
  readonly withArgument?: readonly string[];
  /** Values that other tools have and this one refuses, with or without an argument, with the alternative. */
  readonly refusedValues?: ReadonlyMap<string, string>;
  /** For the refusal of any other value: what may have been meant. */
  readonly otherValueHint?: string;
  /** The value of `--name` without `=VALUE`; the next word is then not its value. */
  readonly valueIfBare?: string;
  /** May be given several times; all its values are in `Given.lists`. */
  readonly repeats?: true;
  readonly summary: string;
}

export const LOG_LEVEL_OPTION: Option = {
  name: "log-level",
  value: "LEVEL",
  oneOf: ["debug", "info", "warn", "error", "fatal", "panic"],
  summary:
    "debug: also log every request to the datastore and the API, and which datastore is used; all others: only warnings and errors",
};
