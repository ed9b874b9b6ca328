/** Parses the arguments after a command name: options may be anywhere, `--` ends them, `-` alone is an argument. */
import { nearestName } from "../../model/nearest-name.ts";
import { quoted } from "../../quote.ts";
import { type Given, UsageError } from "./command.ts";
import type { Option } from "./option.ts";

export function parseArguments(args: readonly string[], options: readonly Option[]): Given {
  const operands: string[] = [];
  const switches = new Set<string>();
  const values = new Map<string, string>();
  const lists = new Map<string, readonly string[]>();
  for (let index = 0; index < args.length; index += 1) {
    const word = args[index] ?? "";
    if (word === "--") {
      operands.push(...args.slice(index + 1));
      break;
    }
    if (word === "-" || !word.startsWith("-")) {
      operands.push(word);
      continue;
    }
    const { option, attached } = readOption(word, options);
    if (option.value === undefined) {
      if (attached !== undefined) throw new UsageError(`"--${option.name}" does not take a value`);
      switches.add(option.name);
      continue;
    }
    const isNext = attached === undefined && option.valueIfBare === undefined;
    if (isNext) index += 1;
    const value = checkedValue(option, isNext ? args[index] : (attached ?? option.valueIfBare));
    if (option.repeats) lists.set(option.name, [...(lists.get(option.name) ?? []), value]);
    else values.set(option.name, requireSameValue(option, values.get(option.name), value));
  }
  return { operands, switches, values, lists };
}

/** `--output=json`, `--output`, `-o`, `-ojson`. */
export function readOption(word: string, options: readonly Option[]): { option: Option; attached: string | undefined } {
  if (word.startsWith("--")) {
    const equals = word.indexOf("=");
    const name = equals < 0 ? word.slice(2) : word.slice(2, equals);
    const option = options.find((candidate) => candidate.name === name);
    if (option !== undefined) return { option, attached: equals < 0 ? undefined : word.slice(equals + 1) };
    throw unknownOption(`--${name}`, options);
  }
  const option = options.find((candidate) => candidate.letter === word[1]);
  if (option === undefined) throw unknownOption(word.slice(0, 2), options);
  const rest = word.slice(2);
  if (rest !== "" && option.value === undefined) throw unknownOption(word, options);
  return { option, attached: rest === "" ? undefined : rest.replace(/^=/, "") };
}

function checkedValue(option: Option, value: string | undefined): string {
  const { oneOf, withArgument = [] } = option;
  const allowed =
    oneOf === undefined ? option.value : [...oneOf, ...withArgument.map((name) => `${name}=…`)].join(" or ");
  if (value === undefined || value === "") throw new UsageError(`"--${option.name}" needs a value: ${allowed}`);
  const isAllowed =
    oneOf === undefined || oneOf.includes(value) || withArgument.some((name) => value.startsWith(`${name}=`));
  if (isAllowed) return value;
  const refusal = option.refusedValues?.get(value.split("=")[0] ?? "");
  if (refusal !== undefined) throw new UsageError(`"--${option.name}" is ${quoted(value)}: ${refusal}`);
  throw new UsageError(`"--${option.name}" is ${quoted(value)}: must be ${allowed}${option.otherValueHint ?? ""}`);
}

/** With two different values, one of them would be ignored silently. */
function requireSameValue({ name }: Option, before: string | undefined, value: string): string {
  if (before === undefined || before === value) return value;
  throw new UsageError(`"--${name}" is given twice: ${quoted(before)} and ${quoted(value)}`);
}

function unknownOption(given: string, options: readonly Option[]): UsageError {
  const known = options.map((option) => `--${option.name}`);
  const nearest = given.length > 2 ? nearestName(given, known) : undefined;
  const hint = nearest === undefined ? "" : `; did you mean "${nearest}"?`;
  return new UsageError(`Unknown option ${quoted(given)}${hint}`);
}
