/**
 * Refuses to work under a node name that another machine has registered: both would
 * use the same blocks, and GC of one would release the addresses of the other. A
 * node that is not registered, or without a recorded machine, is not checked. Pure.
 *
 * A node of the cluster (the orchestrator's API) need not be registered: its kubelet
 * reports its machine. That can only prove that the node is this machine's: a kubelet
 * may see another machine ID than the plugins, so a different one does not refuse them.
 */
import type { Entry, Wanted } from "../datastore/datastore.ts";
import { PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import { resourceKey } from "../model/keys.ts";
import { hashMachineId } from "../model/machine-annotation.ts";
import type { StoredNode } from "../model/stored-resources.ts";
import { quoted } from "../quote.ts";
import { decodeNode } from "./records.ts";

export interface ThisMachine {
  readonly node: string;
  /** Identity of this machine; called only if the node has a recorded one. */
  readonly machineIdentity: () => string | undefined;
}

const LAST_MOMENT = 8.64e15;

export function wantedNode(node: string): Wanted {
  return { kind: "key", key: resourceKey("nodes", { name: node }) };
}

export function requireOwnNodeEntry(answer: readonly Entry[] | undefined, machine: ThisMachine): void {
  const entry = answer?.[0];
  if (entry !== undefined) requireOwnNode(decodeNode(entry), machine);
}

/**
 * Refuses to go on unless this machine has registered the node name, or its kubelet has: otherwise another host may use
 * it too. Returns when it did: what was recorded earlier may be another host's.
 */
export function requireRegisteredByThis(answer: readonly Entry[] | undefined, machine: ThisMachine): Date {
  const entry = answer?.[0];
  const registered = entry && decodeNode(entry);
  if (registered?.machine !== undefined) {
    requireOwnNode(registered, machine);
    return momentOf(registered.machineSince);
  }
  if (registered !== undefined && isOfKubelet(registered, machine.machineIdentity()))
    return momentOf(registered.kubelet?.since);
  throw new PluginError(
    "config-invalid",
    `Cannot tell what belongs to this host: no machine has registered node name ${quoted(machine.node)}, so another host may use it too`,
    { details: `run "${identity.adminTool} node register" on this host` },
  );
}

/** Whether the kubelet that reports the node runs on this machine. */
export function isOfKubelet({ kubelet }: Pick<StoredNode, "kubelet">, machine: string | undefined): boolean {
  return kubelet !== undefined && hashMachineId(kubelet.machineId) === machine;
}

function momentOf(text = ""): Date {
  const moment = Date.parse(text);
  return new Date(Number.isNaN(moment) ? LAST_MOMENT : moment);
}

export function requireOwnNode(registered: StoredNode | undefined, { node, machineIdentity }: ThisMachine): void {
  const recorded = registered?.machine;
  if (recorded === undefined) return;
  const own = machineIdentity();
  if (own === recorded) return;
  throw new PluginError(
    "config-invalid",
    `Cannot use node name ${quoted(node)}: another machine has registered it (${quoted(recorded)}; this one is ${quoted(own ?? "without an ID")})`,
    {
      details: `give this host another name ("nodename" in the network config), or, if it replaces the other machine, run "${identity.adminTool} node register --force" on it`,
    },
  );
}
