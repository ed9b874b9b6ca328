/**
 * What the runtime said through CNI_* variables: which command needs which
 * variable, and what a well-formed value is.
 *
 * First step of a call. Variables are looked at in the order of the table: a
 * malformed one ends the walk at once, missing ones are named all together.
 */
import { PluginError } from "../errors.ts";
import { interfaceNameProblem, nameProblem } from "./names.ts";

export const CNI_COMMANDS = ["ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION"] as const;

export type CniCommand = (typeof CNI_COMMANDS)[number];

/** The process environment, as a value. */
export type Environment = Readonly<Record<string, string | undefined>>;

export type RequiredVariable = "CNI_CONTAINERID" | "CNI_NETNS" | "CNI_IFNAME" | "CNI_PATH";

/** What a plugin that wires containers looks at. An IPAM plugin needs less. */
export const ALL_VARIABLES: readonly RequiredVariable[] = ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"];

interface VariableRow {
  readonly name: RequiredVariable;
  readonly commands: readonly CniCommand[];
  /** Why a value is no good; `undefined` when it is well formed. */
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
 * Refuses an environment that lacks, or holds malformed, what `command` needs
 * of the variables the plugin looks at. Set but empty counts as missing.
 */
export function checkEnvironment(
  env: Environment,
  command: string,
  looksAt: readonly RequiredVariable[] = ALL_VARIABLES,
): void {
  const missing: string[] = [];
  for (const { name, commands, problem } of VARIABLES) {
    if (!looksAt.includes(name) || !commands.some((needing) => needing === command)) continue;
    const value = env[name] ?? "";
    if (value === "") {
      missing.push(name);
      continue;
    }
    const reason = problem(value);
    if (reason === undefined) continue;
    throw new PluginError("environment-invalid", `Cannot use ${name} ${JSON.stringify(value)}: ${reason}`);
  }
  if (missing.length === 0) return;
  throw new PluginError("environment-invalid", `Cannot run ${command}: ${missing.join(", ")} not set`);
}

/** The directories of CNI_PATH. Empty entries are dropped: they would mean the working directory. */
export function pluginDirectories(env: Environment): readonly string[] {
  return (env["CNI_PATH"] ?? "").split(":").filter((directory) => directory !== "");
}

/** Whether the caller insists on working in the plugin's own network namespace. */
export function allowsOwnNetns(env: Environment): boolean {
  const value = env["CNI_NETNS_OVERRIDE"] ?? "";
  return value === "1" || value.toLowerCase() === "true";
}
