/**
 * Real etcd servers on loopback: single or clustered, plain or with TLS, with
 * or without the JSON gateway. They end with the test run, and the next run removes
 * what a killed one left.
 */
import { randomInt } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { temporaryDirectory } from "./temporary-directory.ts";

export const hasEtcd = Bun.which("etcd") !== null;

/** Prefix of a command: the kernel then kills it together with the test run. */
export const DYING_WITH_PARENT: readonly string[] = Bun.which("setpriv") ? ["setpriv", "--pdeathsig", "KILL"] : [];

const MARK = "vt-etcd-";

export interface ServerTls {
  readonly cert: string;
  readonly key: string;
  /** Clients must present a certificate signed by this. */
  readonly clientCa?: string;
}

/** Where a member runs: by default on loopback. */
export interface MemberPlace {
  readonly address: string;
  /** Prefix of its command, for a namespace of its own. */
  readonly enter: readonly string[];
}

interface EtcdPlan {
  readonly members?: number;
  /** One for each member. */
  readonly places?: readonly MemberPlace[];
  readonly tls?: ServerTls;
  readonly gateway?: "on" | "off";
  readonly flags?: readonly string[];
}

export interface EtcdMember {
  readonly endpoint: string;
  readonly pid: number;
  signal(name: NodeJS.Signals): void;
  /** Starts it again with its data, after `meanwhile` may have changed them; it must have ended. */
  restart(meanwhile?: (directory: string) => void): Promise<void>;
}

export interface EtcdCluster {
  readonly endpoints: readonly string[];
  readonly members: readonly EtcdMember[];
  readonly directory: string;
  stop(): Promise<void>;
}

export async function startEtcd(plan: EtcdPlan = {}): Promise<EtcdCluster> {
  sweep();
  const directory = temporaryDirectory("etcd");
  const names = Array.from({ length: plan.members ?? 1 }, (_, index) => `member-${index}`);
  const ports = await freePorts(names.length * 2);
  const scheme = plan.tls ? "https" : "http";
  const place = (index: number): MemberPlace => plan.places?.[index] ?? { address: "127.0.0.1", enter: [] };
  const endpoints = names.map((_, index) => `${scheme}://${place(index).address}:${ports[index * 2]}`);
  const peers = names.map((_, index) => `http://${place(index).address}:${ports[index * 2 + 1]}`);
  const initialCluster = names.map((name, index) => `${name}=${peers[index]}`).join(",");
  const start = (name: string, index: number) => {
    const log = Bun.file(join(directory.path, `${name}.log`));
    const address = { endpoint: endpoints[index] ?? "", peer: peers[index] ?? "", initialCluster };
    const etcd = ["etcd", ...memberFlags(name, directory.path, address), ...planFlags(plan)];
    const command = [...DYING_WITH_PARENT, ...place(index).enter, ...etcd];
    return Bun.spawn(command, { stdout: log, stderr: log, stdin: "ignore" });
  };
  const processes = names.map(start);
  const listening = (index: number) => untilListening(new URL(endpoints[index] ?? ""), directory.path);
  const kill = () => {
    for (const each of processes) each.kill("SIGKILL");
  };
  process.on("exit", kill);
  await Promise.all(names.map((_, index) => listening(index)));
  return {
    endpoints,
    directory: directory.path,
    members: names.map((name, index) => ({
      endpoint: endpoints[index] ?? "",
      get pid() {
        return processes[index]?.pid ?? 0;
      },
      signal: (signal) => processes[index]?.kill(signal),
      restart: async (meanwhile = () => {}) => {
        await processes[index]?.exited;
        meanwhile(join(directory.path, name));
        processes[index] = start(name, index);
        await listening(index);
      },
    })),
    stop: async () => {
      kill();
      await Promise.all(processes.map((each) => each.exited));
      process.off("exit", kill);
      directory.remove();
    },
  };
}

function memberFlags(
  name: string,
  directory: string,
  { endpoint, peer, initialCluster }: { endpoint: string; peer: string; initialCluster: string },
): readonly string[] {
  return [
    `--name=${name}`,
    `--data-dir=${join(directory, name)}`,
    `--listen-client-urls=${endpoint}`,
    `--advertise-client-urls=${endpoint}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=${initialCluster}`,
    "--logger=zap",
    "--unsafe-no-fsync",
  ].filter((flag) => flag !== "--unsafe-no-fsync" || supportsNoFsync());
}

/** Only later releases of etcd 3.4 have the flag; tests need no durable disk. */
function supportsNoFsync(): boolean {
  noFsync ??= Bun.spawnSync(["etcd", "--help"]).stdout.toString().includes("unsafe-no-fsync");
  return noFsync;
}
let noFsync: boolean | undefined;

function planFlags({ tls, gateway = "on", flags = [] }: EtcdPlan): readonly string[] {
  return [
    ...(tls ? [`--cert-file=${tls.cert}`, `--key-file=${tls.key}`] : []),
    ...(tls?.clientCa ? ["--client-cert-auth", `--trusted-ca-file=${tls.clientCa}`] : []),
    `--enable-grpc-gateway=${gateway === "on"}`,
    ...flags,
  ];
}

export function etcdctl(endpoint: string, args: readonly string[], flags: readonly string[] = []): string {
  const command = ["etcdctl", `--endpoints=${endpoint}`, ...flags, ...args];
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { env: { ...process.env, ETCDCTL_API: "3" } });
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr}`);
  return stdout.toString();
}

/** How many requests of each kind etcd has served, from its own metrics. */
export async function countRequests(endpoint: string): Promise<Readonly<Record<string, number>>> {
  return requestsIn(await (await fetch(`${endpoint}/metrics`)).text());
}

/** How many requests of any kind its metrics count. */
export function countRequestsIn(metrics: string): number {
  return Object.values(requestsIn(metrics)).reduce((sum, count) => sum + count, 0);
}

function requestsIn(metrics: string): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const [, method = "", count = "0"] of metrics.matchAll(
    /^grpc_server_handled_total\{.*?grpc_method="(\w+)".*?\} (\d+)$/gm,
  )) {
    counts[method] = (counts[method] ?? 0) + Number(count);
  }
  return counts;
}

/** Below the ports of outgoing connections, one of which could otherwise use a server's port while the server restarts. */
const LISTENING_PORTS = { first: 10_000, count: 22_000 };

export async function freePorts(count: number): Promise<readonly number[]> {
  const servers = new Map<number, Server>();
  while (servers.size < count) {
    const port = LISTENING_PORTS.first + randomInt(LISTENING_PORTS.count);
    const server = await listenAt(port);
    if (server !== undefined) servers.set(port, server);
  }
  await Promise.all(Array.from(servers.values(), (server) => new Promise((resolve) => server.close(resolve))));
  return [...servers.keys()];
}

/** `undefined` if the port is in use. */
function listenAt(port: number): Promise<Server | undefined> {
  const { promise, resolve } = Promise.withResolvers<Server | undefined>();
  const server = createServer().once("error", () => resolve(undefined));
  server.listen(port, "127.0.0.1", () => resolve(server));
  return promise;
}

/** The leader of the cluster. */
export function leaderOf(cluster: EtcdCluster): EtcdMember {
  const leader = cluster.members.find(({ endpoint }) => {
    const [status] = JSON.parse(etcdctl(endpoint, ["endpoint", "status", "-w", "json"]));
    return status.Status.leader === status.Status.header.member_id;
  });
  if (!leader) throw new Error("the cluster has no leader");
  return leader;
}

async function untilListening({ hostname, port }: URL, directory: string): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const isOpen = await Bun.connect({ hostname, port: Number(port), socket: { data() {} } }).then(
      (socket) => {
        socket.end();
        return true;
      },
      () => false,
    );
    if (isOpen) return;
    await Bun.sleep(50);
  }
  const logs = readdirSync(directory).filter((name) => name.endsWith(".log"));
  throw new Error(logs.map((name) => readFileSync(join(directory, name), "utf8").slice(-2000)).join("\n"));
}

/** Ends servers of earlier runs: their data directory has our prefix, and the process that started them has ended. */
function sweep(): void {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const command = existsSync(`/proc/${pid}/cmdline`) ? readText(`/proc/${pid}/cmdline`) : "";
    if (!command.startsWith("etcd\0") || !command.includes(MARK)) continue;
    const parent = /^PPid:\s+(\d+)$/m.exec(readText(`/proc/${pid}/status`))?.[1];
    if (parent === "1") process.kill(Number(pid), "SIGKILL");
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
