import { FLOW_HISTORY_DIRECTORY } from "../../config/config-files.ts";
import { NETWORK_CONFIG_DIRECTORY } from "../../config/installed-network-list.ts";
import { describeFailure } from "../../errors.ts";
import { isFlowLine } from "../../flows/flow-answer.ts";
import { identity } from "../../identity.ts";
import { HIDDEN } from "../../redaction.ts";
import { birdFiles } from "../../routing/bird/bird-files.ts";
import { CONFIG_FILE, OTHER_CONFIG_FILE } from "../datastore/options.ts";
import { linesOfNode } from "../flows/flow-access.ts";
import { EXIT_OK, type ExitCode, type Given } from "../main/command.ts";
import type { Call, Clock, Files, Host, HostAccess, HostNetwork } from "../main/context.ts";
import { type Collected, type Missing, writeArchive } from "./archive.ts";
import { FLOWS_OPTION, flowsTime, MOST_FLOWS } from "./options.ts";
import type { ArchivedFile } from "./tar.ts";

export async function run(context: HostAccess & Clock, given: Given): Promise<ExitCode> {
  const logs = given.values.get("log-dir") ?? identity.logDirectory;
  const flows = flowsTime(given);
  await writeArchive(await collect(context, logs, flows), context, given);
  return EXIT_OK;
}

/** The file in the archive, and the program whose output it has. */
const PROGRAMS: readonly (readonly [file: string, command: readonly string[]])[] = [
  ["kernel.txt", ["uname", "-a"]],
  ["modules.txt", ["lsmod"]],
  ["addresses.txt", ["ip", "-d", "-s", "address", "show"]],
  ["routes-ipv4.txt", ["ip", "-4", "route", "show", "table", "all"]],
  ["routes-ipv6.txt", ["ip", "-6", "route", "show", "table", "all"]],
  ["rules-ipv4.txt", ["ip", "-4", "rule", "show"]],
  ["rules-ipv6.txt", ["ip", "-6", "rule", "show"]],
  ["neighbours.txt", ["ip", "neighbour", "show"]],
  ["forwarding.txt", ["bridge", "fdb", "show"]],
  ["traffic-control.txt", ["tc", "-s", "qdisc", "show"]],
  ["nft-rules.txt", ["nft", "-a", "list", "ruleset"]],
  ["nft-sets.txt", ["nft", "list", "sets"]],
  ["iptables.txt", ["iptables-save"]],
  ["ip6tables.txt", ["ip6tables-save"]],
  ["ipsets.txt", ["ipset", "list"]],
  ["sockets.txt", ["ss", "-natup"]],
  ["flow-history.txt", ["ls", "-l", FLOW_HISTORY_DIRECTORY]],
  ["node-agent-configurations.yaml", [identity.adminTool, "get", "nodeagentconfigurations", "--output", "yaml"]],
  ["journal.txt", ["journalctl", "--no-pager", "--unit", identity.nodeAgent, "--lines", "20000"]],
];

/** Settings of the kernel that decide about the packets of pods. */
const SETTINGS = [
  "net/ipv4/ip_forward",
  "net/ipv6/conf/all/forwarding",
  "net/ipv4/conf/all/rp_filter",
  "net/ipv4/conf/default/rp_filter",
  "net/netfilter/nf_conntrack_max",
  "net/netfilter/nf_conntrack_count",
  "net/netfilter/nf_conntrack_acct",
  "net/netfilter/nf_conntrack_timestamp",
  "net/netfilter/nf_conntrack_events",
];

async function collect(
  context: HostAccess & Clock,
  logs: string,
  flowMilliseconds: number | undefined,
): Promise<Collected> {
  const files: ArchivedFile[] = [];
  const missing: Missing[] = [];
  const add = async (path: string, what: string, read: () => Promise<string>) => {
    try {
      files.push({ path, text: await read() });
    } catch (failure) {
      context.signal.throwIfAborted();
      missing.push({ what, reason: describeFailure(failure) });
    }
  };
  await add("date.txt", "date", async () => `${context.now().toISOString()}\n`);
  await add("hostname.txt", "host name", async () => `${await context.hostName()}\n`);
  await add("version.txt", "version", async () => `${identity.adminTool} ${context.version}\n`);
  for (const [path, command] of PROGRAMS) await add(path, command.join(" "), () => outputOf(context, command));
  for (const [path, read] of reports(context))
    await add(path, path, async () => `${JSON.stringify(await read(), undefined, 2)}\n`);
  await add("settings.txt", "settings of the kernel", () => settings(context));
  // Losses and problems; the last ones of no flows.
  await add("flow-losses.jsonl", "losses of flows", () => flowLines(context, { last: "0" }));
  if (flowMilliseconds !== undefined) {
    const since = `${context.now().getTime() - flowMilliseconds}`;
    await add("flows.jsonl", "flows", async () => endOf(await flowLines(context, { since, last: MOST_FLOWS })));
  }
  const adding = { context, add, missing };
  await addFolder(NETWORK_CONFIG_DIRECTORY, isNetworkConfig, adding, 1);
  await addFolder(identity.configDirectory, isToolConfig, adding, 1);
  await addFolder(logs, isLog, adding);
  const passwords = await bgpPasswords(context);
  return { files: files.map((file) => ({ ...file, text: withoutAny(passwords, file.text) })), missing };
}

function reports(context: Host & HostNetwork): readonly (readonly [string, () => Promise<unknown>])[] {
  return [
    ["routing.json", () => context.readRoutingFacts()],
    ["host.json", () => context.readHostFacts()],
    ["kernel-features.json", () => context.readKernelFeatures()],
  ];
}

/** As a program of the host. */
const FLOWS_MILLISECONDS = 30_000;

async function flowLines(context: Call, parameters: Readonly<Record<string, string>>): Promise<string> {
  const limit = AbortSignal.timeout(FLOWS_MILLISECONDS);
  const signal = AbortSignal.any([context.signal, limit]);
  const lines = await linesOfNode({ env: context.env, signal }, parameters);
  if (limit.aborted) throw new Error("the node agent did not answer in time");
  if (lines === undefined) throw new Error("this node records none");
  return lines.map((line) => `${line}\n`).join("");
}

async function outputOf(context: Host, command: readonly string[]): Promise<string> {
  const done = await context.runProgram(command);
  if (done === undefined) throw new Error(`there is no program "${command[0]}"`);
  return done.exitCode === 0 ? done.output : `${done.output}\nexit code ${done.exitCode}\n`;
}

async function settings(context: Files): Promise<string> {
  const lines: string[] = [];
  for (const name of SETTINGS) {
    const value = await context.readFile(`/proc/sys/${name}`).catch(() => undefined);
    if (value !== undefined) lines.push(`${name.replaceAll("/", ".")} = ${value.trim()}\n`);
  }
  return lines.join("");
}

/**
 * Which files are collected. Others may be secrets that have no form by which they could be recognized: passwords of BGP
 * sessions, keys, credentials of other plugins.
 */
type IsKnown = (path: string) => boolean;

/** As container runtimes find them. */
const isNetworkConfig: IsKnown = (path) => /\.(conflist|conf|json)$/.test(path);
const isToolConfig: IsKnown = (path) => path === CONFIG_FILE || path === OTHER_CONFIG_FILE;
const isLog: IsKnown = (path) => path.endsWith(".log");

/** A log may be large: its end is what matters. */
const LONGEST_FILE = 5_000_000;
const DEEPEST_LOGS = 5;

interface Adding {
  readonly context: Call & Files;
  readonly add: (path: string, what: string, read: () => Promise<string>) => Promise<void>;
  readonly missing: Missing[];
}

/** The known files of a directory and below, with their paths on the host. */
async function addFolder(folder: string, isKnown: IsKnown, adding: Adding, depth = DEEPEST_LOGS): Promise<void> {
  const { context, add, missing } = adding;
  let names: readonly string[] | undefined;
  try {
    names = await context.listFolder(folder);
  } catch (failure) {
    context.signal.throwIfAborted();
    missing.push({ what: folder, reason: describeFailure(failure) });
    return;
  }
  if (names === undefined) {
    if (isKnown(folder))
      await add(folder.replace(/^\//, ""), folder, async () => {
        const text = await context.readFile(folder);
        // `flowLogFile` may have any name.
        if (isFlowLine(text.slice(0, text.indexOf("\n") + 1 || undefined)))
          throw new Error(`it has flows, which are collected with --${FLOWS_OPTION.name} alone`);
        return endOf(text);
      });
    else missing.push({ what: "a file of an unknown kind", reason: folder });
    return;
  }
  if (depth > 0) for (const name of names) await addFolder(`${folder}/${name}`, isKnown, adding, depth - 1);
}

/** Any file may hold the password of a BGP session if a BGPPeer names it: those in use are removed wherever they are. */
async function bgpPasswords(context: Files): Promise<readonly string[]> {
  const { configuration } = birdFiles(identity.runDirectory);
  const text = await context.readFile(configuration).catch(() => "");
  return Array.from(text.matchAll(/\bpassword "([^"]*)"/g), ([, password = ""]) => password);
}

/** Shorter ones are in any text by chance. */
const SHORTEST_SECRET = 4;

function withoutAny(secrets: readonly string[], text: string): string {
  const long = secrets.filter(({ length }) => length >= SHORTEST_SECRET);
  return long.reduce((clean, secret) => clean.replaceAll(secret, HIDDEN), text);
}

function endOf(text: string): string {
  return text.length <= LONGEST_FILE
    ? text
    : `… the first ${text.length - LONGEST_FILE} characters are left out\n${text.slice(-LONGEST_FILE)}`;
}
