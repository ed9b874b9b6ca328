/**
 * Runs one call of a CNI plugin: decodes it, calls the handler and encodes the reply.
 *
 *   environment -> stdin -> name -> version -> own netns? -> handler -> result in the caller's version
 *
 * The order determines which error a bad call gets. Whatever a handler throws
 * becomes one JSON error. Nothing here touches the real process: it is passed in
 * as a value, and the reply is returned as one.
 */
import { PluginError } from "../errors.ts";
import { quoted } from "../quote.ts";
import {
  type AddCall,
  type CheckCall,
  type CniCall,
  cniVersionOf,
  composeCall,
  type DelCall,
  type GcCall,
  networkNameOf,
  type StatusCall,
} from "./call.ts";
import {
  ALL_VARIABLES,
  allowsOwnNetns,
  checkEnvironment,
  type Environment,
  isCniCommand,
  type RequiredVariable,
} from "./environment.ts";
import { parseJsonObject } from "./json.ts";
import { newestVersionOf, type PluginDescription, replyFromDescription } from "./plugin-description.ts";
import { errorReply, type Reply, resultReply, SILENT_SUCCESS } from "./reply.ts";
import type { CniResult } from "./result.ts";
import { type CniVersion, isCniVersion } from "./version.ts";

/** The process the plugin runs in. */
export interface CniProcess {
  readonly env: Environment;
  /** All of stdin, to its end. */
  readStdin(): Promise<Uint8Array>;
  /** Whether the path is this process's own network namespace; `false` if it cannot be opened. */
  isOwnNetns(path: string): Promise<boolean>;
  /** Aborted when the process gets a stop signal. */
  readonly signal: AbortSignal;
}

export interface CallContext {
  /** Aborted when the process gets a stop signal: undo what was done, then throw. */
  readonly signal: AbortSignal;
}

export interface CniPlugin extends PluginDescription {
  /** The variables that the plugin requires; all four if absent. */
  readonly requiredVariables?: readonly RequiredVariable[];
  add(call: AddCall, context: CallContext): Promise<CniResult>;
  del(call: DelCall, context: CallContext): Promise<void>;
  check(call: CheckCall, context: CallContext): Promise<void>;
  gc(call: GcCall, context: CallContext): Promise<void>;
  status(call: StatusCall, context: CallContext): Promise<void>;
}

/** Never throws: every failure becomes a JSON error. */
export async function serve(process: CniProcess, plugin: CniPlugin): Promise<Reply> {
  const command = process.env["CNI_COMMAND"] ?? "";
  const ready = replyFromDescription(command, plugin);
  if (ready !== undefined) return ready;

  const caller = { version: newestVersionOf(plugin) };
  try {
    const call = await readCall(process, plugin, command, caller);
    await refuseOwnNetns(call, process, plugin);
    return await handle(call, plugin, { signal: process.signal });
  } catch (failure) {
    return errorReply(process.signal.aborted ? interrupted(failure) : failure, caller.version, command);
  }
}

/** `caller.version` is set as soon as it is known, so that a later error is in that version. */
async function readCall(
  process: CniProcess,
  plugin: CniPlugin,
  command: string,
  caller: { version: CniVersion },
): Promise<CniCall> {
  checkEnvironment(process.env, command, plugin.requiredVariables);
  const stdin = await readAll(process);
  const config = parseJsonObject(stdin, "the network config");
  networkNameOf(config);
  if (!isCniCommand(command) || command === "VERSION") {
    throw new PluginError("environment-invalid", `Cannot run CNI_COMMAND ${quoted(command)}: no such command`);
  }
  if (isCniVersion(config["cniVersion"])) caller.version = config["cniVersion"];
  const cniVersion = cniVersionOf(config, command, plugin.supportedVersions);
  caller.version = cniVersion;
  return composeCall(command, process.env, { stdin, config, cniVersion });
}

async function readAll(process: CniProcess): Promise<Uint8Array> {
  try {
    return await process.readStdin();
  } catch (cause) {
    if (cause instanceof PluginError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new PluginError("io-failure", `Cannot read the network config from stdin: ${reason}`, { cause });
  }
}

/** Checked before anything is changed: on the host's own namespace, the plugin would disconnect the host. */
async function refuseOwnNetns(call: CniCall, process: CniProcess, plugin: CniPlugin): Promise<void> {
  if (call.command !== "ADD" && call.command !== "DEL") return;
  if (!(plugin.requiredVariables ?? ALL_VARIABLES).includes("CNI_NETNS")) return;
  if (call.netns === undefined || allowsOwnNetns(process.env) || !(await process.isOwnNetns(call.netns))) return;
  const state = "it is the plugin's own network namespace";
  throw new PluginError("netns-invalid", `Cannot use CNI_NETNS ${quoted(call.netns)}: ${state}`);
}

async function handle(call: CniCall, plugin: CniPlugin, context: CallContext): Promise<Reply> {
  switch (call.command) {
    case "ADD":
      return resultReply(await plugin.add(call, context), call.cniVersion);
    case "DEL":
      await plugin.del(call, context);
      return SILENT_SUCCESS;
    case "CHECK":
      await plugin.check(call, context);
      return SILENT_SUCCESS;
    case "GC":
      await plugin.gc(call, context);
      return SILENT_SUCCESS;
    case "STATUS":
      await plugin.status(call, context);
      return SILENT_SUCCESS;
  }
}

function interrupted(failure: unknown): unknown {
  if (failure instanceof PluginError && failure.kind === "interrupted") return failure;
  const details = failure instanceof Error ? failure.message : String(failure);
  return new PluginError("interrupted", "Cannot finish: the process received a stop signal", {
    details,
    cause: failure,
  });
}
