/**
 * One machine of a simulated cluster: a kernel, files, the node agent, the server of calls, and a runtime that calls the
 * plugin. All programs are the product's.
 *
 *   runtime ── call ──▶ the server of calls, if it runs and is used; else a process of its own ──▶ kernel, datastore
 *   node agent ───────────────────────────────────────────────────────────────────────────────▶ kernel, datastore
 */

import { SEEN_REVISIONS_FILE } from "../../src/agent/network/seen-revisions.ts";
import { natLockPath } from "../../src/config/run-directory.ts";
import type { Datastore } from "../../src/datastore/datastore.ts";
import { DATASTORE_STATUS_FILE } from "../../src/datastore/replica/status-file.ts";
import { ERROR_TABLE } from "../../src/errors.ts";
import { identity } from "../../src/identity.ts";
import { parseAddress } from "../../src/ip/address.ts";
import { type InterfaceAddress, parsePrefix } from "../../src/ip/prefix.ts";
import type { KubeClient } from "../../src/kube/api.ts";
import { perform } from "../../src/linux/netlink-socket.ts";
import { addRoute } from "../../src/linux/rtnetlink/route.ts";
import { hashMachineId } from "../../src/model/machine-annotation.ts";
import type { PluginHost } from "../../src/plugin/plugin-host.ts";
import { SERVER_OF_CALLS, type WorldAttachment } from "../judge/invariant.ts";
import { SimulatedHost } from "../kernel/simulated-host.ts";
import { SimulatedProcess } from "../schedule/process.ts";
import type { Random } from "../schedule/random.ts";
import type { Scheduler } from "../schedule/scheduler.ts";
import "./loaded-parts.ts";
import { hostOfManyCalls, hostOfOneCall } from "./call-hosts.ts";
import { NETWORK_FILE, type NetworkOptions, networkList } from "./network-config.ts";
import { NodeFiles } from "./node-files.ts";
import type { MachineMeans } from "./node-means.ts";
import { callPlugin, type GivenCall } from "./plugin-call.ts";
import { runAgent } from "./simulated-agent.ts";
import { type CallOutcome, SimulatedRuntime } from "./simulated-runtime.ts";

export interface SimulatedNodeMeans {
  readonly name: string;
  readonly scheduler: Scheduler;
  readonly random: Random;
  /** New connections, for each process that starts. */
  readonly openStore: (process: SimulatedProcess) => Datastore;
  /** For the process that serves calls; as the others if absent. */
  readonly openServingStore?: (process: SimulatedProcess) => Datastore;
  readonly openApi: (process: SimulatedProcess) => KubeClient;
  readonly network: Omit<NetworkOptions, "node">;
  /** As in its `/etc/machine-id`, which its kubelet reports; named after the node if absent. */
  readonly machineId?: string;
  /** Of its network card. */
  readonly addresses: readonly InterfaceAddress[];
  readonly gateway?: string;
  /** Gets what the programs of this machine log. */
  readonly onLog?: (line: string) => void;
  /** A program failed that was not killed, for a reason that lies in its own code. */
  readonly onCrash?: (what: string) => void;
  /** A call died that `killNextCall` was for. */
  readonly onCallKilled?: () => void;
  /** Who executes calls while the agent runs; "itself" if absent. */
  readonly calls?: "itself" | "server";
}

interface Serving {
  readonly process: SimulatedProcess;
  readonly host: PluginHost;
}

/** A runtime waits that long for its plugin. */
const CALL_MILLISECONDS = 120_000;
const DATASTORE_STATUS = `${identity.runDirectory}/${DATASTORE_STATUS_FILE}`;
const SEEN_REVISIONS = `${identity.runDirectory}/${SEEN_REVISIONS_FILE}`;
const STATUS_FOLDER = `${identity.runDirectory}/endpoint-status`;
/** Before the agent starts the server of calls again. */
const SERVER_PAUSE_MILLISECONDS = 100;
/** The product's plugin takes a server that does not greet by then for frozen, and does the call itself. */
const GREETING_MILLISECONDS = 1_000;
const LINES_KEPT = 200;

export class SimulatedNode {
  readonly files = new NodeFiles();
  readonly runtime: SimulatedRuntime;
  /** What the programs of this machine logged, the latest last. */
  readonly logged: string[] = [];
  private machine: SimulatedHost;
  private running: SimulatedProcess | undefined;
  private serving: Serving | undefined;
  private readonly calls = new Set<SimulatedProcess>();
  private nextKill: number | undefined;
  private isOff = false;
  private processes = 0;
  private boots = 0;
  /** Another number after each end of the machine. */
  private lives = 0;
  private bootedAt = new Date(0);

  constructor(private readonly means: SimulatedNodeMeans) {
    this.files.write(NETWORK_FILE, networkList({ ...means.network, node: means.name }));
    this.machine = this.boot();
    this.runtime = new SimulatedRuntime({
      network: () => this.files.read(NETWORK_FILE) ?? "",
      call: (call) => this.call(call),
      hasNamespace: (path) => this.machine.namespaceAt(path) !== undefined,
      makeNamespace: (path) => void this.machine.makeNamespace(path),
      removeNamespace: (path) => this.machine.removeNamespace(path),
    });
  }

  get name(): string {
    return this.means.name;
  }

  get machineId(): string {
    return this.means.machineId ?? `machine-of-${this.name}`;
  }

  /** The kernel. Another one after each start of the machine. */
  get host(): SimulatedHost {
    return this.machine;
  }

  get attachments(): ReadonlyMap<string, WorldAttachment> {
    return this.runtime.attachments;
  }

  /** `undefined` while none runs. */
  get agent(): SimulatedProcess | undefined {
    return this.running;
  }

  /** By the name of the file. */
  get statusFiles(): ReadonlyMap<string, string> {
    return this.files.in(STATUS_FOLDER);
  }

  get datastoreStatus(): string | undefined {
    return this.files.read(DATASTORE_STATUS);
  }

  get seenRevisions(): string | undefined {
    return this.files.read(SEEN_REVISIONS);
  }

  /** The agent says that outgoing NAT is for the pools that there are. */
  get isNatFollowed(): boolean {
    return this.files.isLocked(natLockPath({}));
  }

  startAgent(): void {
    if (this.running !== undefined) return;
    const process = this.newProcess("agent");
    this.running = process;
    process.onKill(() => {
      if (this.running !== process) return;
      this.running = undefined;
      // Its child dies with it.
      this.serving?.process.kill();
    });
    const log = (message: string) => this.log(message);
    const crashed = (what: string) => {
      if (process.isAlive) this.means.onCrash?.(`${process.name} ${what}`);
    };
    const ended = (how: string) => {
      if (process.isAlive && !process.signal.aborted) {
        this.log(`the agent ${how}`);
        crashed(how);
      }
      // What it has open is closed.
      process.kill();
    };
    runAgent(process, { means: this.machineMeans(), log, crashed }).then(
      () => ended("has ended by itself"),
      (failure: unknown) => ended(`has ended: ${failure}`),
    );
    if (this.means.calls === "server") this.startServer();
  }

  killAgent(): void {
    this.running?.kill();
  }

  restartAgent(): void {
    this.killAgent();
    this.startAgent();
  }

  /** With everything else in its container. */
  freezeAgent(milliseconds: number): void {
    for (const process of [this.running, this.serving?.process]) process?.freeze(milliseconds);
  }

  /** The next call dies after that many effects. */
  killNextCall(afterEffects: number): void {
    this.nextKill = afterEffects;
  }

  killCalls(): void {
    for (const process of [...this.calls]) process.kill();
  }

  /** Everything stops half way; the kernel and what was in memory are gone. */
  switchOff(): void {
    this.lives += 1;
    this.isOff = true;
    this.killAgent();
    this.killCalls();
    this.attachmentsLost();
  }

  switchOn(): void {
    this.isOff = false;
    this.files.forgetMemory();
    this.machine = this.boot();
  }

  private attachmentsLost(): void {
    this.runtime.attachments.clear();
  }

  private boot(): SimulatedHost {
    const { name, random, addresses, gateway } = this.means;
    this.boots += 1;
    this.bootedAt = this.means.scheduler.date;
    const host = new SimulatedHost({ name, random: random.fork(`boot ${this.boots}`) });
    host.addHardware({ name: "eth0", addresses });
    const [towards, everything] = [parseAddress(gateway ?? ""), parsePrefix("0.0.0.0/0")];
    if (towards !== undefined && everything !== undefined) {
      perform(host.directKernel().openSocket("route"), [addRoute({ destination: everything, gateway: towards })]);
    }
    return host;
  }

  private startServer(): void {
    const process = this.newProcess(SERVER_OF_CALLS);
    const serving = { process, host: hostOfManyCalls(process, this.machineMeans()) };
    this.serving = serving;
    process.onKill(() => {
      if (this.serving === serving) this.serving = undefined;
      // The agent starts it again.
      this.means.scheduler.after(SERVER_PAUSE_MILLISECONDS, () => {
        if (this.running !== undefined && this.serving === undefined) this.startServer();
      });
    });
  }

  /** If the server of calls dies, the process that handed the call over does it itself. */
  private async call(call: GivenCall): Promise<CallOutcome> {
    // It has waited for its turn meanwhile.
    if (this.isOff) return { kind: "died" };
    const kill = this.nextKill;
    this.nextKill = undefined;
    const { lives } = this;
    const serving = await this.answeringServer();
    if (serving !== undefined) {
      if (kill !== undefined) serving.process.killAfter(kill);
      const outcome = await this.callIn(serving, call);
      if (kill !== undefined) serving.process.killAfter(Number.POSITIVE_INFINITY);
      if (outcome.kind !== "died") return outcome;
      if (kill !== undefined) this.means.onCallKilled?.();
    }
    // The machine was switched off meanwhile, and the process that handed the call over with it.
    if (lives !== this.lives) return { kind: "died" };
    const process = this.newProcess("call");
    if (serving === undefined && kill !== undefined) {
      process.killAfter(kill);
      process.onKill(() => {
        if (this.calls.has(process) && lives === this.lives) this.means.onCallKilled?.();
      });
    }
    this.calls.add(process);
    const cancel = this.means.scheduler.after(CALL_MILLISECONDS, () => process.kill());
    try {
      return await this.callIn({ process, host: hostOfOneCall(process, this.machineMeans()) }, call);
    } finally {
      cancel();
      this.calls.delete(process);
      // What it has open is closed.
      process.kill();
    }
  }

  private async answeringServer(): Promise<Serving | undefined> {
    const { serving } = this;
    if (serving?.process.isFrozen !== true) return serving;
    await this.means.scheduler.wait(GREETING_MILLISECONDS);
    return serving.process.isAlive && !serving.process.isFrozen ? serving : undefined;
  }

  private async callIn({ process, host }: Serving, call: GivenCall): Promise<CallOutcome> {
    const died = Promise.withResolvers<CallOutcome>();
    process.onKill(() => died.resolve({ kind: "died" }));
    const log = (text: string) => this.log(text.trim());
    const reply = callPlugin(call, process, { means: this.machineMeans(), host, log }).then(
      ({ exitCode, stdout }): CallOutcome => {
        if (exitCode === 0) return { kind: "done", stdout };
        const reason = reasonIn(stdout);
        if (process.isAlive && isInternal(stdout)) this.means.onCrash?.(`${process.name}: ${reason}`);
        return { kind: "failed", reason };
      },
    );
    return Promise.race([reply, died.promise]);
  }

  private newProcess(kind: string): SimulatedProcess {
    this.processes += 1;
    const title = `${kind} ${this.processes} on ${this.name}`;
    return new SimulatedProcess(title, this.means.scheduler, this.means.random.fork(title));
  }

  private machineMeans(): MachineMeans {
    const { name, openStore, openApi, openServingStore = openStore } = this.means;
    const { machine } = this;
    return {
      ...{ name, openStore, openServingStore, openApi, files: this.files },
      kernelFor: (process) => machine.kernelFor(process),
      machineIdentity: hashMachineId(this.machineId),
      bootedAt: this.bootedAt,
    };
  }

  private log(line: string): void {
    this.means.onLog?.(line);
    this.logged.push(line);
    if (this.logged.length > LINES_KEPT) this.logged.shift();
  }
}

function reasonIn(stdout: string): string {
  const { msg, details } = JSON.parse(stdout);
  return details === undefined ? msg : `${msg} (${details})`;
}

/** Nothing that a user, a server or the kernel did explains it. */
function isInternal(stdout: string): boolean {
  return JSON.parse(stdout).code === ERROR_TABLE.internal.code;
}
