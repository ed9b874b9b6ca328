/**
 * A small runtime: runs a network list as libcni does, so that tests need no
 * container engine. The requests are built by pure functions in src/cni; this file
 * executes them and stores the results.
 */
import type { CniCommand } from "../../src/cni/environment.ts";
import type { JsonObject } from "../../src/cni/json.ts";
import { decodeNetwork } from "../../src/cni/network-list.ts";
import {
  addRequest,
  type CapabilityValues,
  checkRequests,
  delRequests,
  gcRequests,
  type PluginRequest,
  statusRequests,
} from "../../src/cni/plugin-requests.ts";
import type { CniResult } from "../../src/cni/result.ts";
import { decodeResult } from "../../src/cni/result-conversion.ts";
import type { Finished, RunOptions } from "./host.ts";

export interface RuntimeAttachment {
  readonly containerId: string;
  readonly netns: string;
  /** "eth0" when absent. */
  readonly ifname?: string;
  /** CNI_ARGS. */
  readonly args?: string;
  readonly capabilities?: CapabilityValues;
}

export interface Runtime {
  /** A failed ADD is followed by a DEL, as in runtimes; the error has `plugin`, `command` and CNI `code`. */
  add(attachment: RuntimeAttachment): Promise<CniResult>;
  check(attachment: RuntimeAttachment): Promise<void>;
  del(attachment: RuntimeAttachment): Promise<void>;
  /** Runs DEL for every remembered attachment that is not among the valid ones, then GC. */
  gc(valid: readonly RuntimeAttachment[]): Promise<void>;
  status(): Promise<void>;
  /** The stored result of an attachment. */
  cachedResult(attachment: RuntimeAttachment): CniResult | undefined;
  /** Stores an attachment that another runtime made. */
  remember(attachment: RuntimeAttachment, result: CniResult): void;
  /** Forgets an attachment, like a runtime that lost its files. */
  forget(attachment: RuntimeAttachment): void;
}

/** The error of a failed plugin. */
class PluginFailure extends Error {
  constructor(
    readonly plugin: string,
    readonly command: CniCommand,
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

export interface RuntimeSettings {
  readonly conflist: JsonObject;
  /** The directory of all plugins of the list, as seen where they run. */
  readonly pluginDirectory: string;
  /** Runs a plugin, for example in a private host. */
  readonly run: (command: readonly string[], options: RunOptions) => Promise<Finished>;
}

export function startRuntime({ conflist, pluginDirectory, run }: RuntimeSettings): Runtime {
  const list = decodeNetwork(conflist);
  const cache = new Map<string, { readonly attachment: RuntimeAttachment; readonly result: CniResult }>();

  const execute = async (command: CniCommand, request: PluginRequest, attachment?: RuntimeAttachment) => {
    const environment = { CNI_COMMAND: command, CNI_PATH: pluginDirectory, ...variablesOf(attachment) };
    const stdin = JSON.stringify(request.config);
    const finished = await run([`${pluginDirectory}/${request.type}`], { environment, stdin });
    if (finished.code !== 0) throw failureOf(request.type, command, finished);
    return finished.stdout;
  };
  const executeAll = async (
    command: CniCommand,
    requests: readonly PluginRequest[],
    attachment?: RuntimeAttachment,
  ) => {
    for (const request of requests) await execute(command, request, attachment);
  };
  const addThrough = async (attachment: RuntimeAttachment) => {
    const capabilities = attachment.capabilities ?? {};
    let result: CniResult | undefined;
    for (const entry of list.plugins) {
      const request = addRequest(list, entry, { prevResult: result, capabilities });
      const answer: unknown = JSON.parse(await execute("ADD", request, attachment));
      result = decodeResult(answer, list.cniVersion);
    }
    if (result === undefined) throw new Error(`Cannot add "${attachment.containerId}": the list has no plugins`);
    return result;
  };
  const del = async (attachment: RuntimeAttachment) => {
    const result = cache.get(keyOf(attachment))?.result;
    await executeAll("DEL", delRequests(list, result, attachment.capabilities ?? {}), attachment);
    cache.delete(keyOf(attachment));
  };

  return {
    async add(attachment) {
      try {
        const result = await addThrough(attachment);
        cache.set(keyOf(attachment), { attachment, result });
        return result;
      } catch (failure) {
        await del(attachment).catch(() => {}); // The failure of the ADD is the news.
        throw failure;
      }
    },
    async check(attachment) {
      const result = cache.get(keyOf(attachment))?.result;
      if (result === undefined) throw new Error(`Cannot check "${keyOf(attachment)}": it was never added`);
      await executeAll("CHECK", checkRequests(list, result, attachment.capabilities ?? {}), attachment);
    },
    del,
    async gc(valid) {
      const kept = new Set(valid.map(keyOf));
      for (const [key, { attachment }] of [...cache]) if (!kept.has(key)) await del(attachment);
      await executeAll("GC", gcRequests(list, valid.map(identityOf)));
    },
    status: () => executeAll("STATUS", statusRequests(list)),
    cachedResult: (attachment) => cache.get(keyOf(attachment))?.result,
    remember(attachment, result) {
      cache.set(keyOf(attachment), { attachment, result });
    },
    forget(attachment) {
      cache.delete(keyOf(attachment));
    },
  };
}

function identityOf({ containerId, ifname = "eth0" }: RuntimeAttachment) {
  return { containerId, ifname };
}

function keyOf(attachment: RuntimeAttachment): string {
  return Object.values(identityOf(attachment)).join("/");
}

function variablesOf(attachment: RuntimeAttachment | undefined): Readonly<Record<string, string>> {
  if (attachment === undefined) return {};
  const { containerId, ifname } = identityOf(attachment);
  const args = attachment.args === undefined ? {} : { CNI_ARGS: attachment.args };
  return { CNI_CONTAINERID: containerId, CNI_NETNS: attachment.netns, CNI_IFNAME: ifname, ...args };
}

function failureOf(plugin: string, command: CniCommand, { stdout, stderr }: Finished): PluginFailure {
  try {
    const { code, msg, details } = JSON.parse(stdout);
    return new PluginFailure(plugin, command, code, [msg, details].filter(Boolean).join(": "));
  } catch {
    return new PluginFailure(plugin, command, 0, `no CNI error: ${stdout}${stderr}`);
  }
}
