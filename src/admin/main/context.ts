/**
 * Everything outside the process that a command may use, in the pieces that commands take. `src/bin/admin.ts` has the real
 * ones, tests pass their own.
 */
import type { RunningOwners } from "../../chained/portmap/running-owners.ts";
import type { DatastoreSettings } from "../../config/datastore-settings.ts";
import type { KubeAccess } from "../../config/kube-access.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import type { Clock as SteadyClock } from "../../datastore/replica/clock.ts";
import type { Address, Family } from "../../ip/address.ts";
import type { HostLinks } from "../../ipam/leaks/host-links.ts";
import type { KubeClient, KubeLines } from "../../kube/api.ts";
import type { GroupListener } from "../../linux/log-group.ts";
import type { Expression } from "../../linux/nftables/expression.ts";
import type { Tracer } from "../../linux/nftables/trace.ts";
import type { HostAddress } from "../../linux/rtnetlink/host-addresses.ts";
import type { WantedTables } from "../../upkeep/restore-tables.ts";
import type { CniHost } from "../config/check-cni-host.ts";
import type { DatastoreNotice } from "../datastore/notice.ts";
import type { AgentFacts, HostFacts, KernelFeatures, RoutingFacts } from "../host/facts.ts";
import type { PolicyCounts } from "../policy/chain-interfaces.ts";

/** All pieces; a function names those that it needs. */
export interface Context extends Call, Terminal, Files, Host, HostNetwork, PolicyTable, Cluster, Clock {}

/** What it takes to work on what all hosts share, and to tell the user about it. */
export interface ClusterAccess extends Call, Terminal, Cluster {}

/** What it takes to choose a datastore, also that of the network of this host, and to open it. */
export interface DatastoreAccess extends ClusterAccess, Files, HostNetwork {}

/** What it takes to look at all of this host, and to tell the user about it. */
export interface HostAccess extends Call, Terminal, Files, Host, HostNetwork {}

/** What the command was called with, and what ends it. */
export interface Call {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Fires, with an `Interruption`, when the user stops the command: every wait ends, and the command with it. */
  readonly signal: AbortSignal;
  /** The release of this tool. */
  readonly version: string;
}

/** Where the user reads and types. */
export interface Terminal {
  /** Whether stdout is a terminal. */
  readonly isTerminal: boolean;
  /** Columns of the terminal on stdout; `undefined` or 0 if unknown. */
  readonly terminalWidth: number | undefined;
  /** Whether stderr is a terminal: long work then shows its progress there. */
  readonly showsProgress: boolean;
  /** Fires when stdout is closed by its reader (`| head`), which a write detects. */
  readonly outputClosed: AbortSignal;
  stdout(text: string): void;
  stderr(text: string): void;
  readStdin(): Promise<string>;
  /** Opens the text in an editor, and returns it when the editor has ended. */
  editText(text: string, editor: string): Promise<EditedText>;
}

/** The files of this host. */
export interface Files {
  readFile(path: string): Promise<string>;
  /** As `readFile`, but refuses a file that somebody else than this user and root may change. */
  readOwnFile(path: string): Promise<string>;
  /** The names in a directory, sorted; `undefined` if the path is not a directory. */
  listFolder(path: string): Promise<readonly string[] | undefined>;
  /** Replaces a file of this host, atomically; returns whether its content was another. */
  replaceFile(path: string, text: string): Promise<boolean>;
  /** As `replaceFile`, but only its owner may read it. */
  replacePrivateFile(path: string, text: string): Promise<void>;
  /** Returns whether the file existed. */
  removeFile(path: string): Promise<boolean>;
  /** Writes a new file that only its owner can read; fails if it exists. */
  writeArchive(path: string, content: Uint8Array): Promise<void>;
}

/** This host: its programs, its kernel and the agent on it. */
export interface Host {
  hostName(): Promise<string>;
  /** Identity of the machine that the tool runs on; an ID is generated if it has none. */
  machineIdentity(): Promise<string>;
  /** The process that has started this one; another one as soon as that has ended. */
  readonly startedBy: () => number;
  /** A program of this host, by its path or its name in PATH; `undefined` if there is none. */
  findProgram(name: string): Program | undefined;
  /** Runs a program of the host for at most half a minute; `undefined` if the host does not have it. */
  runProgram(command: readonly string[]): Promise<ProgramOutput | undefined>;
  /** The container runtimes and the plugins of this host. */
  readCniHost(): Promise<CniHost>;
  /** Of the host that the tool runs on. */
  readHostFacts(): Promise<HostFacts>;
  /** What the kernel of the host can do: each feature was tried, in a namespace of its own. */
  readKernelFeatures(): Promise<KernelFeatures>;
  /** Whether the node agent of this host runs, also if it has just started and does not serve calls yet, and what it has left. */
  readAgentFacts(): Promise<AgentFacts>;
}

/** The network of this host: links, addresses, routes, tables. */
export interface HostNetwork {
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
  /** Sessions of BGP, and routes between nodes. */
  readRoutingFacts(): Promise<RoutingFacts>;
  /** Writes the nftables tables that all pods of the host share; returns the names of those that were not up to date. */
  restoreTables(wanted: WantedTables, warn: (message: string) => void): Promise<readonly string[]>;
  /** Removes what the host tracks of connections of these addresses, which have no link any more. */
  readonly forgetConnections: (addresses: readonly Address[]) => Promise<void>;
}

/** The policy table of this host, and the packets that meet it. */
export interface PolicyTable {
  /** The counters of the policy table of the host; `undefined` if it has no such table. */
  readPolicyCounts(): Promise<PolicyCounts | undefined>;
  /** Follows the packets that policy drops on this host, until it is closed; `undefined` if the host has no policy table. */
  openDropLog(): Promise<GroupListener | undefined>;
  /** Watches packets of the host that meet one of the lists of conditions, until it is closed. */
  openTracer(alternatives: readonly (readonly Expression[])[]): Promise<Tracer>;
}

/** What all hosts share. */
export interface Cluster {
  openDatastore(settings: DatastoreSettings): Promise<Datastore>;
  /** Of the run of one command, which sets it. */
  readonly datastoreNotice?: DatastoreNotice;
  /** Of the orchestrator's API, for what is not a record of the datastore. */
  openKubeClient(access: KubeAccess): Promise<KubeClient>;
  /** The same, for responses that go on while the user watches. */
  openKubeLines(access: KubeAccess): Promise<KubeLines>;
}

/** Time and chance. */
export interface Clock {
  now(): Date;
  uuid(): string;
  /** A number from 0 (inclusive) to 1 (exclusive). */
  random(): number;
  wait(milliseconds: number): Promise<void>;
  /** Milliseconds that never go back, and waits that end early with a signal: for a Lease that is held meanwhile. */
  readonly clock: SteadyClock;
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
