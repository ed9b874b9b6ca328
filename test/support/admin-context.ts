/** Runs the admin tool inside the test: files are a table, output is text. */

import type { CniHost } from "../../src/admin/config/check-cni-host.ts";
import { CONFIG_FILE } from "../../src/admin/datastore/options.ts";
import type { AgentFacts, HostFacts, KernelFeatures, RoutingFacts } from "../../src/admin/host/facts.ts";
import type { Context } from "../../src/admin/main/context.ts";
import { runAdmin } from "../../src/admin/main/run.ts";
import type { PolicyCounts } from "../../src/admin/policy/chain-interfaces.ts";
import type { Datastore } from "../../src/datastore/datastore.ts";
import { openMemory } from "../../src/datastore/memory/memory.ts";
import { type Clock, SYSTEM_CLOCK } from "../../src/datastore/replica/clock.ts";
import type { HostLinks } from "../../src/ipam/leaks/host-links.ts";
import type { HostAddress } from "../../src/linux/rtnetlink/host-addresses.ts";
import { VERSION } from "../../src/version.ts";
import { storeAround } from "./wrapped-store.ts";

export interface AdminRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface AdminSurroundings {
  readonly files?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly isTerminal?: boolean;
  readonly terminalWidth?: number | undefined;
  readonly env?: Context["env"];
  readonly showsProgress?: boolean;
  /** The datastore of the tool, whatever its options say. It stays open. */
  readonly store?: Datastore;
  readonly openDatastore?: Context["openDatastore"];
  readonly openKubeClient?: Context["openKubeClient"];
  readonly openKubeLines?: Context["openKubeLines"];
  readonly hostFacts?: HostFacts;
  readonly runProgram?: Context["runProgram"];
  readonly writeArchive?: Context["writeArchive"];
  readonly kernelFeatures?: KernelFeatures;
  readonly agentFacts?: AgentFacts;
  readonly routingFacts?: RoutingFacts;
  readonly restoreTables?: Context["restoreTables"];
  readonly forgetConnections?: Context["forgetConnections"];
  readonly now?: Date | (() => Date);
  readonly uuid?: () => string;
  readonly random?: () => number;
  readonly clock?: Clock;
  readonly signal?: AbortSignal;
  /** Called with each text as it is written to stdout. */
  readonly onStdout?: (text: string) => void;
  readonly wait?: Context["wait"];
  readonly hostName?: string;
  readonly version?: string;
  readonly policyCounts?: PolicyCounts;
  readonly openTracer?: Context["openTracer"];
  readonly openDropLog?: Context["openDropLog"];
  readonly uplinkMtu?: number;
  readonly replaceFile?: Context["replaceFile"];
  readonly replacePrivateFile?: Context["replacePrivateFile"];
  readonly removeFile?: Context["removeFile"];
  readonly findProgram?: Context["findProgram"];
  readonly hostAddresses?: readonly HostAddress[];
  readonly linkNames?: readonly string[];
  readonly publishedPorts?: Context["publishedPorts"];
  readonly sourceTowards?: Context["sourceTowards"];
  readonly machineIdentity?: string;
  readonly cniHost?: CniHost;
  readonly hostLinks?: Partial<HostLinks>;
  readonly containerAddresses?: ReadonlySet<string>;
  readonly readFile?: Context["readFile"];
  readonly readStdin?: Context["readStdin"];
  readonly listFolder?: Context["listFolder"];
  /** What the user makes of the text in the editor. */
  readonly edit?: (text: string, editor: string) => string | Promise<string>;
}

export async function runInside(args: readonly string[], surroundings: AdminSurroundings = {}): Promise<AdminRun> {
  const [out, err]: [string[], string[]] = [[], []];
  const context = contextIn(surroundings, {
    stdout(text) {
      out.push(text);
      surroundings.onStdout?.(text);
    },
    stderr: (text) => void err.push(text),
  });
  const code = await runAdmin(args, context);
  return { code, stdout: out.join(""), stderr: err.join("") };
}

interface Output {
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
}

export function contextIn(surroundings: AdminSurroundings, { stdout, stderr }: Output): Context {
  const { files = {}, stdin = "", isTerminal = false, terminalWidth, showsProgress = false, env = {} } = surroundings;
  const { signal = new AbortController().signal, wait = async () => {} } = surroundings;
  const { store = openMemory(), now = new Date("2026-01-02T03:04:05Z") } = surroundings;
  return {
    env,
    isTerminal,
    terminalWidth,
    showsProgress,
    signal,
    outputClosed: new AbortController().signal,
    stdout,
    stderr,
    readFile: surroundings.readFile ?? (async (path) => files[path] ?? settingsAt(path, surroundings) ?? missing()),
    readOwnFile: surroundings.readFile ?? (async (path) => files[path] ?? missing()),
    readStdin: surroundings.readStdin ?? (async () => stdin),
    listFolder: surroundings.listFolder ?? (async (path) => namesBelow(`${path}/`, files)),
    hostName: async () => surroundings.hostName ?? "This-Host",
    version: surroundings.version ?? VERSION,
    replaceFile: surroundings.replaceFile ?? (async () => false),
    replacePrivateFile: surroundings.replacePrivateFile ?? (async () => {}),
    removeFile: surroundings.removeFile ?? (async () => false),
    startedBy: () => 1,
    findProgram: surroundings.findProgram ?? (() => undefined),
    uplinkMtu: async () => surroundings.uplinkMtu,
    hostAddresses: async () => surroundings.hostAddresses ?? [],
    linkNames: async () => surroundings.linkNames ?? ["eth0"],
    publishedPorts: surroundings.publishedPorts ?? (async () => ({ owners: [], unreadable: [] })),
    sourceTowards: surroundings.sourceTowards ?? (async () => undefined),
    hostLinks: async () => ({
      marks: new Set(),
      marksWithSources: new Set(),
      attachments: new Map(),
      routed: new Map(),
      bootedAt: new Date(0),
      isHostNamespace: true,
      ...surroundings.hostLinks,
    }),
    containerAddresses: async () => surroundings.containerAddresses,
    machineIdentity: async () => surroundings.machineIdentity ?? "this-machine",
    readCniHost: async () =>
      surroundings.cniHost ?? { runtimes: [], pluginDirectories: [], plugins: new Set(), unreadable: [] },
    editText: async (text, editor) => ({
      text: (await surroundings.edit?.(text, editor)) ?? text,
      path: "/tmp/edited.yaml",
      remove: async () => {},
    }),
    openDatastore: surroundings.openDatastore ?? (async () => keptOpen(store)),
    openKubeClient: surroundings.openKubeClient ?? (() => Promise.reject(new Error("there is no cluster"))),
    openKubeLines: surroundings.openKubeLines ?? (() => Promise.reject(new Error("there is no cluster"))),
    readHostFacts: async () => surroundings.hostFacts ?? WELL,
    runProgram: surroundings.runProgram ?? (async () => undefined),
    writeArchive: surroundings.writeArchive ?? (async () => {}),
    readKernelFeatures: async () => surroundings.kernelFeatures ?? { release: "6.1.0", features: [] },
    readAgentFacts: async () => surroundings.agentFacts ?? { agent: "not used", hasPolicyTable: false },
    readRoutingFacts: async () => surroundings.routingFacts ?? WITHOUT_ROUTES,
    readPolicyCounts: async () => surroundings.policyCounts,
    openDropLog: surroundings.openDropLog ?? (async () => undefined),
    openTracer: surroundings.openTracer ?? (() => Promise.reject(new Error("nothing can be traced"))),
    restoreTables: surroundings.restoreTables ?? (async () => []),
    forgetConnections: surroundings.forgetConnections ?? (async () => {}),
    now: typeof now === "function" ? now : () => now,
    uuid: surroundings.uuid ?? (() => "00000000-0000-4000-8000-000000000001"),
    random: surroundings.random ?? (() => 0.5),
    wait,
    clock: surroundings.clock ?? { now: () => performance.now(), wait: SYSTEM_CLOCK.wait },
  };
}

export const WELL: HostFacts = {
  forwarding: { ipv4: true, ipv6: true },
  advertisedUplinks: [],
  hasLegacyFilter: false,
  droppingChains: [],
  partlyDroppingChains: [],
  tables: { nat: "missing", floating: "missing", guard: "missing", hostPorts: "missing" },
  agent: "not used",
  hasPolicyTable: false,
  podLinks: [],
  knowsClusterSources: true,
};

const WITHOUT_ROUTES: RoutingFacts = {
  isAgentRunning: true,
  state: undefined,
  bird: undefined,
  kernelRoutes: [],
  refusedClaims: [],
  routingProblems: [],
  policyProblems: [],
  datastore: undefined,
};

/** A user who has a datastore has selected it; without this it would be the default, which is not written to. */
function settingsAt(path: string, { files = {}, openDatastore }: AdminSurroundings): string | undefined {
  if (path !== CONFIG_FILE || openDatastore !== undefined) return undefined;
  const selects = Object.keys(files).some((file) => /^\/etc\//.test(file) || /\.(conflist|conf)$/.test(file));
  return selects ? undefined : "etcdEndpoints: http://127.0.0.1:2379";
}

function missing(): never {
  throw Object.assign(new Error("missing"), { code: "ENOENT" });
}

function namesBelow(folder: string, files: Readonly<Record<string, string>>): readonly string[] | undefined {
  const names = Object.keys(files).filter((path) => path.startsWith(folder));
  const direct = new Set(names.map((path) => path.slice(folder.length).split("/")[0] ?? ""));
  return names.length === 0 ? undefined : [...direct].sort();
}

function keptOpen(store: Datastore): Datastore {
  return storeAround(store, { close: async () => {} });
}
