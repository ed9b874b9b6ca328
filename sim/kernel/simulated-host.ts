/**
 * The kernel of one simulated machine: network namespaces, and netlink sockets that the product's own code talks to.
 *
 * Requests are carried out at once, as in Linux. What the kernel does a little later (a link's carrier, duplicate address
 * detection, the end of a namespace) happens by the clock of the simulation.
 */
import type { InterfaceAddress } from "../../src/ip/prefix.ts";
import type { HostKernel, Sysctls } from "../../src/linux/host-kernel.ts";
import { FLAG } from "../../src/linux/netlink/wire.ts";
import type { NetlinkProtocol } from "../../src/linux/netlink-channel.ts";
import { socketOn } from "../../src/linux/netlink-socket.ts";
import type { Netns } from "../../src/linux/netns.ts";
import type { SimulatedProcess } from "../schedule/process.ts";
import type { Random } from "../schedule/random.ts";
import type { Scheduler } from "../schedule/scheduler.ts";
import { type ChannelOwner, ModelChannel } from "./channel.ts";
import { KernelFaults } from "./faults.ts";
import type { LinkKind, NetworkNamespace } from "./model.ts";
import { type KernelClock, Namespace, removeWhere } from "./namespace.ts";
import { addIpipDevice, type KernelDevices, registerHardware } from "./rtnetlink/create-link.ts";
import { addIpv4 } from "./rtnetlink/ipv4-addresses.ts";
import { addIpv6 } from "./rtnetlink/ipv6-addresses.ts";
import { bringUp, deleteLinks } from "./rtnetlink/link-state.ts";
import { writeSetting } from "./sysctl.ts";
import { ADDRESS_FLAG, LINK_KINDS } from "./wire.ts";

export interface HostOptions {
  readonly name: string;
  readonly random: Random;
  /** Kinds of links that the kernel can make; all if absent. */
  readonly kinds?: readonly LinkKind[];
  readonly processors?: number;
}

export interface HardwareOptions {
  readonly name: string;
  readonly mac?: Uint8Array;
  readonly mtu?: number;
  readonly addresses?: readonly InterfaceAddress[];
}

const FIRST_DESCRIPTOR = 100;
const FIRST_PORT = 1000;
const FIRST_PROCESS = 2000;
/** How long the kernel takes to remove the links of a namespace. */
const REMOVAL_MILLISECONDS = 20;
/** How long it takes until a process is woken by what arrived on a socket. */
const WAKE_MILLISECONDS = 1;
const MAC_LENGTH = 6;

export class SimulatedHost {
  readonly root: NetworkNamespace;
  readonly faults: KernelFaults;
  private readonly random: Random;
  private readonly namespaces = new Map<string, Namespace>();
  private readonly descriptors = new Map<number, Namespace>();
  private readonly devices: Omit<KernelDevices, "answer">;
  private readonly rootNamespace: Namespace;
  private readonly all = new Set<Namespace>();
  private hasIpip = false;
  private nextId = 1;
  private nextDescriptor = FIRST_DESCRIPTOR;
  private nextPort = FIRST_PORT;
  private nextProcess = FIRST_PROCESS;
  private scheduler: Scheduler | undefined;
  /** What waits for a clock, if there is none yet. */
  private readonly postponed: { readonly milliseconds: number; readonly work: () => void }[] = [];

  constructor(options: HostOptions) {
    this.random = options.random.fork(options.name);
    this.faults = new KernelFaults(this.random.fork("faults"));
    this.devices = {
      processors: options.processors ?? 2,
      kinds: new Set(options.kinds ?? LINK_KINDS),
      namespaceOf: (descriptor) => this.descriptors.get(descriptor),
      randomMac: () => this.randomMac(),
      loadIpip: () => this.loadIpip(),
    };
    this.rootNamespace = this.newNamespace();
    this.root = this.rootNamespace;
  }

  namespaceAt(path: string): NetworkNamespace | undefined {
    return this.namespaces.get(path);
  }

  makeNamespace(path: string): NetworkNamespace {
    if (this.namespaces.has(path)) throw new Error(`namespace ${path} exists already`);
    const namespace = this.newNamespace();
    this.namespaces.set(path, namespace);
    return namespace;
  }

  /** The path is gone at once; what is in the namespace goes a little later, when nobody has it open any more. */
  removeNamespace(path: string): void {
    const namespace = this.namespaces.get(path);
    this.namespaces.delete(path);
    if (namespace !== undefined) this.releaseIfUnused(namespace);
  }

  /** A network card, up and connected, with its addresses. Returns the index of the link. */
  addHardware(card: HardwareOptions): number {
    const link = registerHardware(this.rootNamespace, { ...card, mac: card.mac ?? this.randomMac() });
    const { index: linkIndex } = link;
    bringUp({ namespace: this.rootNamespace, link });
    const flags = FLAG.create;
    for (const { address, length } of card.addresses ?? []) {
      if (address.family === 4) addIpv4(this.rootNamespace, { linkIndex, address, length, scope: 0 }, { flags });
      else {
        const asked = { linkIndex, address, length, flags: ADDRESS_FLAG.noDuplicateDetection };
        addIpv6(this.rootNamespace, asked, { flags });
      }
    }
    return linkIndex;
  }

  /** For tests without a clock: what the kernel itself would do within this time is done now. */
  settle(milliseconds: number): void {
    for (;;) {
      const due = removeWhere(this.postponed, (each) => each.milliseconds <= milliseconds);
      if (due.length === 0) return;
      for (const { work } of due) work();
    }
  }

  /** The calls of a process. What it sends is an effect of its own; its sockets are closed when it dies. */
  kernelFor(process: SimulatedProcess): HostKernel {
    this.useClock(process.scheduler);
    const owner: ChannelOwner = {
      processId: this.nextProcess++,
      processName: process.name,
      effect: (work) => process.effect(work),
      soon: (work) => {
        process.scheduler.after(WAKE_MILLISECONDS * process.random.next(), () => process.deliver(work));
      },
    };
    const onKill = (work: () => void) => process.onKill(work);
    return this.kernelOf(owner, onKill);
  }

  /** Without a process: its effects happen at once, and no fault disturbs them. */
  directKernel(): HostKernel {
    const owner: ChannelOwner = {
      processId: this.nextProcess++,
      processName: "direct",
      effect: (work) => work(),
      soon: (work) => this.later(work, WAKE_MILLISECONDS),
    };
    return this.kernelOf(owner, () => {}, new KernelFaults(this.random.fork("direct")));
  }

  private kernelOf(owner: ChannelOwner, onKill: (work: () => void) => void, faults = this.faults): HostKernel {
    const open = (namespace: Namespace, protocol: NetlinkProtocol) => {
      const { devices } = this;
      const port = this.nextPort++;
      const channel = new ModelChannel({ namespace, protocol, port, owner, faults, devices });
      onKill(() => channel.close());
      return socketOn(channel, protocol);
    };
    const sysctlsOf = (namespace: Namespace): Sysctls => ({
      readSysctl: (name) => namespace.sysctls.get(name),
      writeSysctl: (name, value) => owner.effect(() => writeSetting(namespace, name, value)),
    });
    return {
      openSocket: (protocol) => open(this.rootNamespace, protocol),
      openNetns: (path) => this.openNetns(path, onKill),
      closeNetns: ({ fd }) => this.closeDescriptor(fd),
      isNetnsAtPath: ({ path, fd }) => {
        const namespace = this.namespaces.get(path);
        return namespace !== undefined && namespace === this.descriptors.get(fd);
      },
      openSocketIn: (netns, protocol) => open(this.opened(netns), protocol),
      ...sysctlsOf(this.rootNamespace),
      withSysctlsOf: (netns, work) => work(sysctlsOf(this.opened(netns))),
    };
  }

  private openNetns(path: string, onKill: (work: () => void) => void): Netns | undefined {
    const namespace = this.namespaces.get(path);
    if (namespace === undefined) return undefined;
    const fd = this.nextDescriptor++;
    this.descriptors.set(fd, namespace);
    onKill(() => this.closeDescriptor(fd));
    return { path, fd };
  }

  private closeDescriptor(fd: number): void {
    const namespace = this.descriptors.get(fd);
    this.descriptors.delete(fd);
    if (namespace !== undefined) this.releaseIfUnused(namespace);
  }

  private opened({ fd, path }: Netns): Namespace {
    const namespace = this.descriptors.get(fd);
    if (namespace === undefined) throw new Error(`descriptor ${fd} of ${path} is not open`);
    return namespace;
  }

  private releaseIfUnused(namespace: Namespace): void {
    const isUsed = [...this.namespaces.values(), ...this.descriptors.values()].includes(namespace);
    if (isUsed || namespace === this.rootNamespace) return;
    this.later(() => {
      const links = [...namespace.links.values()].filter(({ kind }) => kind !== undefined);
      deleteLinks(links.map((link) => ({ namespace, link })));
      this.all.delete(namespace);
    }, REMOVAL_MILLISECONDS);
  }

  private newNamespace(): Namespace {
    const clock: KernelClock = {
      now: () => this.scheduler?.now ?? 0,
      later: (milliseconds, work) => this.later(work, milliseconds),
      chance: () => this.random.next(),
    };
    const namespace = new Namespace(this.nextId++, clock);
    this.all.add(namespace);
    if (this.hasIpip) addIpipDevice(namespace, { ...this.devices, answer: () => {} });
    return namespace;
  }

  private loadIpip(): void {
    if (this.hasIpip || !this.devices.kinds.has("ipip")) return;
    this.hasIpip = true;
    for (const namespace of this.all) addIpipDevice(namespace, { ...this.devices, answer: () => {} });
  }

  private later(work: () => void, milliseconds: number): void {
    if (this.scheduler === undefined) this.postponed.push({ milliseconds, work });
    else this.scheduler.after(milliseconds, work);
  }

  private useClock(scheduler: Scheduler): void {
    if (this.scheduler !== undefined) return;
    this.scheduler = scheduler;
    for (const { milliseconds, work } of this.postponed.splice(0)) scheduler.after(milliseconds, work);
  }

  private randomMac(): Uint8Array {
    const mac = Uint8Array.from({ length: MAC_LENGTH }, () => this.random.below(256));
    mac[0] = ((mac[0] ?? 0) & 0xfe) | 2;
    return mac;
  }
}
