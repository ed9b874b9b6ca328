/** Makes a fault of a script happen in a cluster, and ends it again. What it is about may be gone: then nothing happens. */
import { SimulatedApi } from "../datastore/simulated-api.ts";
import { SimulatedStore } from "../datastore/simulated-store.ts";
import { UNDISTURBED } from "../faults/network.ts";
import type { FaultAction } from "../script/operation.ts";
import type { Cluster } from "./cluster.ts";
import { SHORT_WHILE } from "./coverage.ts";
import { changeKernel } from "./foreign-change.ts";
import { type Machine, SHORTEST_PAUSE } from "./machine.ts";

export function playFault(cluster: Cluster, fault: FaultAction): void {
  if ("node" in fault) playAtNode(cluster, fault);
  else if ("place" in fault) playAtPlace(cluster, fault);
  else playAtServers(cluster, fault);
}

type FaultAtNode = Extract<FaultAction, { readonly node: string }>;
type FaultAtPlace = Extract<FaultAction, { readonly place: string }>;
type FaultAtServers = Exclude<FaultAction, FaultAtNode | FaultAtPlace>;

/** So long somebody who is to die has time for the effects before. */
const TIME_TO_DIE = 30_000;

/** `isFelt`: it touches somebody from its beginning on; else it is counted when it does. */
function begin(cluster: Cluster, fault: FaultAction, end: () => void = () => {}, isFelt = true): void {
  const lasts = "lasts" in fault ? fault.lasts : 0;
  const milliseconds = isFelt ? Math.max(lasts, SHORT_WHILE) : lasts + TIME_TO_DIE;
  cluster.faults.begin({ kind: fault.kind, ...placeOf(fault), milliseconds, end, isFelt });
}

/** Now it does. */
function count(cluster: Cluster, fault: FaultAction): void {
  cluster.scheduler.after(SHORT_WHILE, cluster.coverage.beginFault(fault.kind, placeOf(fault).place));
}

function placeOf(fault: FaultAction): { readonly place?: string } {
  if ("node" in fault) return { place: fault.node };
  return "place" in fault ? { place: fault.place } : {};
}

function playAtServers(cluster: Cluster, fault: FaultAtServers): void {
  const { network } = cluster;
  const { api, store } = cluster.servers;
  const disturb = (disturbance: Partial<typeof UNDISTURBED>) => {
    network.disturbance = { ...network.disturbance, ...disturbance };
  };
  switch (fault.kind) {
    case "disturb requests": {
      const { delay, lostRequest, lostAnswer } = fault;
      disturb({ delay, lostRequest, lostAnswer });
      begin(cluster, fault, () => disturb({ ...UNDISTURBED, lateRequest: network.disturbance.lateRequest }));
      return;
    }
    case "late requests":
      disturb({ lateRequest: fault.probability });
      begin(cluster, fault, () => disturb({ lateRequest: 0 }));
      return;
    case "restart datastore":
      store.server.restart(fault.lasts);
      break;
    case "restart API":
      api.restart(fault.lasts);
      break;
    case "hang datastore":
      store.server.hang(fault.lasts);
      break;
    case "hang API":
      api.hang(fault.lasts);
      break;
    case "busy API":
      api.beBusy(fault.lasts);
      break;
    case "compact datastore":
      store.server.compact();
      break;
    case "compact API":
      api.compact();
      break;
  }
  begin(cluster, fault);
}

function playAtPlace(cluster: Cluster, fault: FaultAtPlace): void {
  const { network } = cluster;
  const { place } = fault;
  const controllers = cluster.controllers.get(place);
  const servers = new Set([cluster.servers.store.server, cluster.servers.api]);
  switch (fault.kind) {
    case "cut":
      network.cut(place);
      begin(cluster, fault, () => network.heal(place));
      return;
    case "kill controllers":
      controllers?.process?.onKill(() => {
        count(cluster, fault);
        cluster.scheduler.after(Math.max(fault.lasts, SHORTEST_PAUSE), () => controllers.start());
      });
      controllers?.process?.killAfter(fault.afterEffects);
      begin(cluster, fault, () => controllers?.heal(), false);
      return;
    case "freeze controllers":
      controllers?.freeze(fault.lasts);
      break;
    case "mislead controllers":
      if (controllers === undefined || !cluster.servers.isEtcd) return;
      cluster.mislead(place, fault.by);
      begin(cluster, fault, () => cluster.correct(place));
      return;
    case "stall watches":
      for (const server of servers) server.stallWatches(place, fault.lasts);
      break;
    case "break watches":
      for (const server of servers) server.breakWatches(place, fault.lasts);
      break;
    case "end watches":
      for (const server of servers) if (server instanceof SimulatedApi) server.endWatches(place, fault.lasts);
      break;
    case "lose watches":
      // The clients of the product notice it; that of the simulated store is none of them, and would not.
      for (const server of servers) if (!(server instanceof SimulatedStore)) server.loseWatches(place);
      break;
  }
  begin(cluster, fault);
}

function playAtNode(cluster: Cluster, fault: FaultAtNode): void {
  const machine = cluster.machines.get(fault.node);
  if (machine?.isOn !== true) return;
  const { node } = machine;
  /** Another machine may have the name by then, and of faults that overlap only one ends them all. */
  const endAt = (end: (present: Machine) => void) => () => {
    const present = cluster.machines.get(fault.node);
    if (present !== undefined) end(present);
  };
  switch (fault.kind) {
    case "kill call":
      // The machine counts it when a call dies.
      node.killNextCall(fault.afterEffects);
      return;
    // Whoever had not so many effects while the fault lasted lives on.
    case "kill agent":
      node.agent?.onKill(() => machine.isOn && count(cluster, fault));
      machine.killAgent(fault.afterEffects, fault.lasts);
      begin(
        cluster,
        fault,
        endAt((present) => present.heal()),
        false,
      );
      return;
    case "freeze agent":
      node.freezeAgent(fault.lasts);
      begin(cluster, fault);
      return;
    case "reboot node":
      machine.switchOff();
      begin(
        cluster,
        fault,
        endAt((present) => present.switchOn()),
      );
      return;
    case "foreign change":
      if (!changeKernel(node.host, fault)) return;
      machine.tamperedAt = cluster.now;
      begin(cluster, fault);
      return;
    default:
      disturbKernel(machine, CHANCES[fault.kind], fault.probability);
      begin(
        cluster,
        fault,
        endAt((present) => disturbKernel(present, CHANCES[fault.kind], 0)),
      );
  }
}

const CHANCES = {
  "lose kernel events": "lostEvents",
  "refuse changes": "refusals",
  "interrupt lists": "interruptedDumps",
} as const;

/** The kernel is another one after a restart of the machine. */
function disturbKernel({ node }: Machine, what: (typeof CHANCES)[keyof typeof CHANCES], probability: number): void {
  node.host.faults[what] = probability;
}
