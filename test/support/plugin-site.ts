/**
 * A private host with a datastore, two pools and the built plugin: calls of a
 * runtime, and a list of everything that is left afterwards.
 */
import { readdirSync } from "node:fs";
import type { Change } from "../../src/datastore/datastore.ts";
import { identity } from "../../src/identity.ts";
import { clusterInformation } from "../../src/model/cluster-information.ts";
import { readBlock } from "../../src/model/ipam-block.ts";
import { parseKey, resourceKey } from "../../src/model/keys.ts";
import { type Finished, type Host, openHost, type RunOptions } from "./host.ts";
import { nodeChange, poolChange } from "./ipam.ts";
import { openKubeTestStore } from "./kube-test-store.ts";
import { routesOfPods } from "./routes-of-pods.ts";
import { builtProgram } from "./run-plugin.ts";
import { type AnyStoreKind, openTestStore, type TestStore } from "./test-store.ts";

export type Json = Readonly<Record<string, unknown>>;

export interface Pod {
  readonly containerId: string;
  /** The name of its namespace on the host. */
  readonly netnsName: string;
  readonly netns: string;
  readonly ifname: string;
  readonly args: string;
}

export interface CallOptions {
  readonly config?: Json;
  readonly environment?: Readonly<Record<string, string>>;
  readonly program?: string;
  /** A command that runs the program. */
  readonly under?: readonly string[];
  readonly limitMilliseconds?: number;
}

export type Command = "ADD" | "DEL" | "CHECK" | "GC" | "STATUS";

export interface PluginSite extends AsyncDisposable {
  readonly host: Host;
  readonly store: TestStore;
  /** The network config of the site, with the fields of `more`. */
  config(more?: Json): Json;
  /** Creates a pod: a namespace on the host, with a container ID. */
  makePod(more?: Partial<Pod>): Promise<Pod>;
  call(command: Command, pod: Pod, options?: CallOptions): Promise<Finished>;
  /** Runs an ADD that must succeed. */
  add(pod: Pod, options?: CallOptions): Promise<AddResult>;
  /** Runs a command that must succeed without output. */
  quietly(command: Command, pod: Pod, options?: CallOptions): Promise<void>;
  /** Runs a command in the pod's namespace; returns what it printed. */
  inside(pod: Pod, command: readonly string[]): Promise<string>;
  /** Every link, route, address, endpoint, handle and file that an attachment can leave; empty if nothing is left. */
  left(): Promise<readonly string[]>;
}

/** The newest version, for all tests but those of versions. */
export interface AddResult {
  readonly cniVersion: string;
  readonly interfaces: readonly { name: string; mac: string; sandbox?: string; mtu?: number }[];
  readonly ips: readonly { address: string; interface: number; gateway?: string }[];
  readonly routes: readonly Json[];
  readonly dns?: Json;
}

const NODE = "node-1";
export const NETWORK = "net";
const HOST_LOCAL_DIRECTORY = "/var/lib/cni/networks";
const POOLS: readonly Change[] = [poolChange("blue", "10.50.0.0/16"), poolChange("blue6", "fd50::/64")];

/** `kind`: a datastore, or how to open one. */
export async function openPluginSite(
  kind: AnyStoreKind | ((host: Host) => Promise<TestStore>),
  seed?: readonly Change[],
): Promise<PluginSite> {
  const host = await openHost();
  // Without an address of its own the host could not send requests.
  await host.must(["ip", "addr", "add", "192.0.2.1/32", "dev", "lo"]);
  await host.must(["ip", "addr", "add", "2001:db8::1/128", "dev", "lo"]);
  const store = await openStore(host, kind);
  // In the API it is the cluster's node, which exists already.
  const node = store.kind === "kubernetes" ? [] : [nodeChange(NODE)];
  await store.put([readyCluster(), ...(seed ?? [...POOLS, ...node])]);
  let pods = 0;

  const config = (more: Json = {}): Json => ({
    cniVersion: "1.1.0",
    name: NETWORK,
    type: identity.product,
    nodename: NODE,
    ...store.config,
    ipam: { type: identity.ipamType, assign_ipv6: "true" },
    ...more,
  });
  const call = (command: Command, pod: Pod, options: CallOptions = {}) =>
    host.run(
      [...(options.under ?? []), options.program ?? builtProgram()],
      runOptions(command, pod, { config: config(), ...options }),
    );

  return {
    host,
    store,
    config,
    async makePod(more = {}) {
      pods += 1;
      const number = pods;
      const netnsName = more.netnsName ?? `vt-pod${number}`;
      await host.must(["ip", "netns", "add", netnsName]);
      const containerId = new Bun.CryptoHasher("sha256").update(`${host.name}/${number}`).digest("hex");
      const args = more.args ?? (await store.podArguments?.()) ?? "";
      return { containerId, netnsName, netns: `/run/netns/${netnsName}`, ifname: "eth0", ...more, args };
    },
    call,
    async add(pod, options) {
      const { code, stdout, stderr } = await call("ADD", pod, options);
      if (code !== 0) throw new Error(`ADD failed with ${code}: ${stdout}${stderr}`);
      return JSON.parse(stdout) as AddResult;
    },
    async quietly(command, pod, options) {
      const { code, stdout, stderr } = await call(command, pod, options);
      if (code !== 0 || stdout !== "") throw new Error(`${command} ended with ${code}: ${stdout}${stderr}`);
    },
    inside: (pod, command) => host.must(["nsenter", `--net=${pod.netns}`, ...command]),
    left: async () => [...(await linksAndRoutes(host)), ...recordsOf(await store.list()), ...hostLocalFiles(host)],
    async [Symbol.asyncDispose]() {
      await store.close();
      await host[Symbol.asyncDispose]();
    },
  };
}

function openStore(host: Host, kind: Parameters<typeof openPluginSite>[0]): Promise<TestStore> {
  if (typeof kind === "function") return kind(host);
  return kind === "kubernetes" ? openKubeTestStore(host, NODE) : openTestStore(host, kind);
}

/** Runs a program without the right to change the network. */
export const WITHOUT_NET_ADMIN = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"] as const;

/** The code of a failed run's CNI error, and its message. */
export function failureOf({ code, stdout, stderr }: Finished): {
  readonly code: number;
  readonly msg: string;
  readonly details?: string;
} {
  if (code !== 1) throw new Error(`Not a failure with exit code 1 but ${code}: ${stdout}${stderr}`);
  return JSON.parse(stdout) as { code: number; msg: string };
}

/** Without the links, whose states the kernel sets later. */
export function withoutLinks(left: readonly string[]): readonly string[] {
  return left.filter((line) => !/ state /.test(line));
}

function runOptions(command: Command, pod: Pod, options: CallOptions): RunOptions {
  return {
    stdin: JSON.stringify(options.config),
    environment: {
      CNI_COMMAND: command,
      CNI_CONTAINERID: pod.containerId,
      CNI_NETNS: pod.netns,
      CNI_IFNAME: pod.ifname,
      CNI_ARGS: pod.args,
      CNI_PATH: "/usr/lib/cni",
      ...options.environment,
    },
    limitMilliseconds: options.limitMilliseconds ?? 60_000,
  };
}

export function readyCluster(datastoreReady = true): Change {
  const value = clusterInformation.write(clusterInformation.make({ name: "default" }, { datastoreReady }));
  return { kind: "put", key: resourceKey("clusterinformations", { name: "default" }), value };
}

/** Without the link-local routes of a link, which the kernel adds later. */
async function linksAndRoutes(host: Host): Promise<readonly string[]> {
  const [links, routes] = await Promise.all([host.must(["ip", "-o", "link"]), routesOfPods(host)]);
  return [
    ...links.split("\n").filter((line) => line !== "" && !/^\d+: lo:/.test(line)),
    ...routes.filter((line) => !/^(\w+ )?(fe80|ff00):/.test(line)),
  ];
}

/** Handles, endpoints and assigned addresses; blocks, affinities and profiles may remain. */
function recordsOf(entries: ReadonlyMap<string, string>): readonly string[] {
  return [...entries].flatMap(([key, value]) => {
    const parts = parseKey(key);
    if (parts?.kind === "handle") return [key];
    if (parts?.kind === "resource") return parts.plural === "workloadendpoints" ? [key] : [];
    if (parts?.kind !== "block") return [];
    const taken = readBlock(value, key).allocations.filter((each) => each !== undefined).length;
    return taken === 0 ? [] : [`${key}: ${taken} taken`];
  });
}

function hostLocalFiles(host: Host): readonly string[] {
  try {
    return readdirSync(host.view(`${HOST_LOCAL_DIRECTORY}/${NETWORK}`)).filter(
      (file) => file !== "lock" && !file.startsWith("last_reserved_ip.") && !file.startsWith("."),
    );
  } catch {
    return [];
  }
}
