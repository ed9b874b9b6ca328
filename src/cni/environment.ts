/**
 * The CNI_* variables: which command requires which variable, and which values are
 * well formed.
 *
 * First step of a call. Variables are checked in the order of the table: a malformed
 * one throws at once, missing ones are all reported in one error.
 */
import { PluginError } from "../errors.ts";
import { quoted } from "../quote.ts";
import { interfaceNameProblem, nameProblem } from "./names.ts";

export const CNI_COMMANDS = ["ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION"] as const;

export type CniCommand = (typeof CNI_COMMANDS)[number];

/** The process environment, as a value. */
export type Environment = Readonly<Record<string, string | undefined>>;

export type RequiredVariable = "CNI_CONTAINERID" | "CNI_NETNS" | "CNI_IFNAME" | "CNI_PATH";

/** The variables that a plugin that creates interfaces requires. An IPAM plugin requires fewer. */
export const ALL_VARIABLES: readonly RequiredVariable[] = ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"];

interface VariableRow {
  readonly name: RequiredVariable;
  readonly commands: readonly CniCommand[];
  /** Why a value is malformed; `undefined` if it is well formed. */
  readonly problem: (value: string) => string | undefined;
}

const anyText = () => undefined;

const VARIABLES: readonly VariableRow[] = [
  { name: "CNI_CONTAINERID", commands: ["ADD", "CHECK", "DEL"], problem: nameProblem },
  { name: "CNI_NETNS", commands: ["ADD", "CHECK"], problem: anyText },
  { name: "CNI_IFNAME", commands: ["ADD", "CHECK", "DEL"], problem: interfaceNameProblem },
  { name: "CNI_PATH", commands: ["ADD", "CHECK", "DEL", "GC", "STATUS"], problem: anyText },
];

export function isCniCommand(text: string): text is CniCommand {
  return CNI_COMMANDS.some((command) => command === text);
}

/**
 * Throws if a variable that the plugin and `command` require is missing or malformed.
 * An empty variable counts as missing.
 */
export function checkEnvironment(
  env: Environment,
  command: string,
  required: readonly RequiredVariable[] = ALL_VARIABLES,
): void {
  const missing: string[] = [];
  for (const { name, commands, problem } of VARIABLES) {
    if (!required.includes(name) || !commands.some((needing) => needing === command)) continue;
    const value = env[name] ?? "";
    if (value === "") {
      missing.push(name);
      continue;
    }
    const reason = problem(value);
    if (reason === undefined) continue;
    throw new PluginError("environment-invalid", `Cannot use ${name} ${quoted(value)}: ${reason}`);
  }
  if (missing.length === 0) return;
  throw new PluginError(
    "environment-invalid",
    `Cannot run ${command}: ${missing.join(", ")} ${missing.length === 1 ? "is" : "are"} not set`,
  );
}

/** The directories of CNI_PATH. Empty entries are ignored: they would mean the working directory. */
export function pluginDirectories(env: Environment): readonly string[] {
  return (env["CNI_PATH"] ?? "").split(":").filter((directory) => directory !== "");
}

/** Whether the caller allows the plugin to work in its own network namespace. */
export function allowsOwnNetns(env: Environment): boolean {
  const value = env["CNI_NETNS_OVERRIDE"] ?? "";
  return value === "1" || value.toLowerCase() === "true";
}
