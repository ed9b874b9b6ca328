import type { RunningOwners } from "../../chained/portmap/running-owners.ts";
import type { DatastoreSettings } from "../../config/datastore-settings.ts";
import type { KubeAccess } from "../../config/kube-access.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import type { Clock } from "../../datastore/replica/clock.ts";
import type { Address, Family } from "../../ip/address.ts";
import type { HostLinks } from "../../ipam/leaks/host-links.ts";
import type { KubeClient } from "../../kube/api.ts";
import type { GroupListener } from "../../linux/log-group.ts";
import type { Expression } from "../../linux/nftables/expression.ts";
import type { Tracer } from "../../linux/nftables/trace.ts";
import type { HostAddress } from "../../linux/rtnetlink/host-addresses.ts";
import type { WantedTables } from "../../upkeep/restore-tables.ts";
import type { CniHost } from "../config/check-cni-host.ts";
import type { DatastoreNotice } from "../datastore/notice.ts";
import { DATASTORE_OPTIONS } from "../datastore/options.ts";
import type { AgentFacts, HostFacts, KernelFeatures, RoutingFacts } from "../host/facts.ts";
import type { PolicyCounts } from "../policy/chain-interfaces.ts";
import type { Interruption } from "./interruption.ts";
import { LOG_LEVEL_OPTION, type Option } from "./option.ts";
/**
 * Defines a command of the admin tool. Help, completion, docs/ and argument
 * parsing are all derived from this description. A new command is a description
 * in `commands.ts` of its group, a file that exports `run`, and a row in
 * `main/commands.ts`.
 */

export type ExitCode = typeof EXIT_OK | typeof EXIT_FAILED | typeof EXIT_USAGE | Interruption["exitCode"];
export const EXIT_OK = 0;
/** The call was correct, but the command failed. */
export const EXIT_FAILED = 1;
/** The call was wrong: unknown command or flag, missing argument. */
export const EXIT_USAGE = 2;

export interface Example {
  /** Without the name of the tool: `config check a.conflist`. */
  readonly command: string;
  readonly does: string;
}

export interface Command {
  readonly kind: "command";
  readonly name: string;
  /** Not shown in help, docs and completion: for the tool's own scripts. */
  readonly isHidden?: true;
  /** One line, for lists of commands. */
  readonly summary: string;
  /** More detail, shown in the command's own help. */
  readonly description?: string;
  /** As help shows it: `FILE…`. Absent if the command takes no arguments. */
  readonly operands?: string;
  /** What completion offers for an argument. */
  readonly completes?: "files" | readonly string[];
  /** Its arguments are a kind and the names of one or more resources of it; completion offers those in the datastore. */
  readonly completesNames?: "one" | "many";
  /** An option with the name of a common option replaces it. */
  readonly options?: readonly Option[];
  /** The command uses the datastore, and accepts the options that select one. */
  readonly needsDatastore?: true;
  /** Absent: refuses to work on a cluster of a later release, and warns if it is an earlier one. "refuse": does not warn. */
  readonly versionCheck?: "none" | "refuse";
  readonly examples: readonly Example[];
  /** Only when the command is called: help, completion and docs need its description alone. */
  load(): Promise<CommandCode>;
}

/** What runs; usually a module. */
export interface CommandCode {
  run(context: Context, given: Given): Promise<ExitCode>;
}

export interface CommandGroup {
  readonly kind: "group";
  readonly name: string;
  readonly summary: string;
  readonly commands: readonly (Command | CommandGroup)[];
}

/** The arguments that the user gave after the command name. */
export interface Given {
  readonly operands: readonly string[];
  readonly switches: ReadonlySet<string>;
  readonly values: ReadonlyMap<string, string>;
  /** The values of repeatable options. */
  readonly lists: ReadonlyMap<string, readonly string[]>;
}

/** Everything outside the process that a command may use. Tests pass their own. */
export interface Context {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether stdout is a terminal. */
  readonly isTerminal: boolean;
  /** Columns of the terminal on stdout; `undefined` or 0 if unknown. */
  readonly terminalWidth: number | undefined;
  /** Whether stderr is a terminal: long work then shows its progress there. */
  readonly showsProgress: boolean;
  /** Fires, with an `Interruption`, when the user stops the command: every wait ends, and the command with it. */
  readonly signal: AbortSignal;
  /** Fires when stdout is closed by its reader (`| head`), which a write detects. */
  readonly outputClosed: AbortSignal;
  stdout(text: string): void;
  stderr(text: string): void;
  readFile(path: string): Promise<string>;
  /** As `readFile`, but refuses a file that somebody else than this user and root may change. */
  readOwnFile(path: string): Promise<string>;
  readStdin(): Promise<string>;
  /** The names in a directory, sorted; `undefined` if the path is not a directory. */
  listFolder(path: string): Promise<readonly string[] | undefined>;
  hostName(): Promise<string>;
  /** The release of this tool. */
  readonly version: string;
  /** Replaces a file of this host, atomically; returns whether its content was another. */
  replaceFile(path: string, text: string): Promise<boolean>;
  /** As `replaceFile`, but only its owner may read it. */
  replacePrivateFile(path: string, text: string): Promise<void>;
  /** A program of this host, by its path or its name in PATH; `undefined` if there is none. */
  findProgram(name: string): Program | undefined;
  /** The smallest MTU of the links to other hosts; `undefined` if there is none. */
  uplinkMtu(): Promise<number | undefined>;
  hostAddresses(): Promise<readonly HostAddress[]>;
  /** All links of this host, also those of pods and tunnels. */
  linkNames(): Promise<readonly string[]>;
  /** Ports of this host that running containers have. */
  publishedPorts(): Promise<RunningOwners>;
  /** The source address of packets to an address or a name; `undefined` if there is no route, or no such name. */
  readonly sourceTowards: (destination: string, family: Family) => Promise<Address | undefined>;
  hostLinks(): Promise<HostLinks>;
  /** In the network namespaces of all processes of the host, without lengths; `undefined` if those cannot be seen. */
  readonly containerAddresses: () => Promise<ReadonlySet<string> | undefined>;
  /** Identity of the machine that the tool runs on; an ID is generated if it has none. */
  machineIdentity(): Promise<string>;
  /** The container runtimes and the plugins of this host. */
  readCniHost(): Promise<CniHost>;
  /** Opens the text in an editor, and returns it when the editor has ended. */
  editText(text: string, editor: string): Promise<EditedText>;
  openDatastore(settings: DatastoreSettings): Promise<Datastore>;
  /** Of the run of one command, which sets it. */
  readonly datastoreNotice?: DatastoreNotice;
  /** Of the orchestrator's API, for what is not a record of the datastore. */
  openKubeClient(access: KubeAccess): Promise<KubeClient>;
  /** Runs a program of the host for at most half a minute; `undefined` if the host does not have it. */
  runProgram(command: readonly string[]): Promise<ProgramOutput | undefined>;
  /** Writes a new file that only its owner can read; fails if it exists. */
  writeArchive(path: string, content: Uint8Array): Promise<void>;
  /** Of the host that the tool runs on. */
  readHostFacts(): Promise<HostFacts>;
  /** What the kernel of the host can do: each feature was tried, in a namespace of its own. */
  readKernelFeatures(): Promise<KernelFeatures>;
  /** Whether the node agent of this host runs, also if it has just started and does not serve calls yet, and what it has left. */
  readAgentFacts(): Promise<AgentFacts>;
  /** Sessions of BGP, and routes between nodes. */
  readRoutingFacts(): Promise<RoutingFacts>;
  /** The counters of the policy table of the host; `undefined` if it has no such table. */
  readPolicyCounts(): Promise<PolicyCounts | undefined>;
  /** Follows the packets that policy drops on this host, until it is closed; `undefined` if the host has no policy table. */
  openDropLog(): Promise<GroupListener | undefined>;
  /** Watches packets of the host that meet one of the lists of conditions, until it is closed. */
  openTracer(alternatives: readonly (readonly Expression[])[]): Promise<Tracer>;
  /** Writes the nftables tables that all pods of the host share; returns the names of those that were not up to date. */
  restoreTables(wanted: WantedTables, warn: (message: string) => void): Promise<readonly string[]>;
  /** Removes what the host tracks of connections of these addresses, which have no link any more. */
  readonly forgetConnections: (addresses: readonly Address[]) => Promise<void>;
  now(): Date;
  uuid(): string;
  /** A number from 0 (inclusive) to 1 (exclusive). */
  random(): number;
  wait(milliseconds: number): Promise<void>;
  /** Milliseconds that never go back, and waits that end early with a signal: for a Lease that is held meanwhile. */
  readonly clock: Clock;
}

/** Runs a program to its end; `stdin` is empty if absent. */
export type Program = (
  args: readonly string[],
  stdin?: string,
) => Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }>;

export interface ProgramOutput {
  readonly exitCode: number;
  /** What it wrote to stdout and stderr. */
  readonly output: string;
}

/** What the user wrote, in a file that stays until it is removed. */
export interface EditedText {
  readonly text: string;
  readonly path: string;
  remove(): Promise<void>;
}

/** Options that every command accepts. */
export const COMMON_OPTIONS: readonly Option[] = [
  {
    name: "output",
    letter: "o",
    value: "FORMAT",
    oneOf: ["text", "json"],
    summary: "Output format: text (default) or json",
  },
  LOG_LEVEL_OPTION,
  { name: "help", letter: "h", summary: "Show help for the command" },
];

export function optionsOf(command: Command): readonly Option[] {
  return [
    ...(command.options ?? []),
    ...(command.needsDatastore ? DATASTORE_OPTIONS : []),
    ...commonOptionsOf(command),
  ];
}

/** The common options that the command does not replace with its own. */
export function commonOptionsOf({ options = [] }: Command): readonly Option[] {
  return COMMON_OPTIONS.filter((common) => options.every(({ name }) => name !== common.name));
}

/** The commands that users see. */
export function visibleCommands({ commands }: CommandGroup): readonly (Command | CommandGroup)[] {
  return commands.filter((member) => member.kind === "group" || !member.isHidden);
}

export function wantsJson(given: Given): boolean {
  return given.values.get("output") === "json";
}

/** A wrong call: its message goes to stderr with a pointer to the help, and the exit code is 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
