/**
 * One call of a plugin as a plain value: what the runtime passed through
 * environment and stdin, checked and decoded.
 */
import { PluginError } from "../errors.ts";
import { quoted } from "../quote.ts";
import { type Attachment, decodeValidAttachments } from "./attachments.ts";
import { type CniCommand, type Environment, pluginDirectories } from "./environment.ts";
import { type JsonObject, kindOf } from "./json.ts";
import { networkNameProblem } from "./names.ts";
import type { CniResult } from "./result.ts";
import { decodePrevResult } from "./result-conversion.ts";
import { type CniVersion, isAtLeast, VERSION_WHEN_ABSENT } from "./version.ts";

interface AnyCall {
  readonly cniVersion: CniVersion;
  readonly networkName: string;
  /** The network config as parsed JSON: the plugin's own decoder reads it. */
  readonly config: JsonObject;
  /** The same config byte for byte, for delegates. */
  readonly stdin: Uint8Array;
  /** The whole environment, for delegates. */
  readonly environment: Environment;
  /** The directories of CNI_PATH. */
  readonly path: readonly string[];
}

interface AttachmentCall extends AnyCall {
  readonly containerId: string;
  /** Empty only in a plugin that does not require CNI_IFNAME. */
  readonly ifname: string;
  /** CNI_ARGS as text: `decodeArguments()` reads it. */
  readonly args: string;
  readonly prevResult: CniResult | undefined;
}

export interface AddCall extends AttachmentCall {
  readonly command: "ADD";
  /** Empty only in a plugin that does not require CNI_NETNS. */
  readonly netns: string;
}

export interface CheckCall extends AttachmentCall {
  readonly command: "CHECK";
  /** Empty only in a plugin that does not require CNI_NETNS. */
  readonly netns: string;
}

export interface DelCall extends AttachmentCall {
  readonly command: "DEL";
  /** Absent if the runtime knows that the namespace no longer exists. */
  readonly netns: string | undefined;
}

export interface GcCall extends AnyCall {
  readonly command: "GC";
  /** The attachments that still exist. `undefined`: the runtime sent no list, so nothing may be removed. */
  readonly validAttachments: readonly Attachment[] | undefined;
}

export interface StatusCall extends AnyCall {
  readonly command: "STATUS";
}

export type CniCall = AddCall | CheckCall | DelCall | GcCall | StatusCall;

/** The command of a call; VERSION needs no call. */
export type CallCommand = CniCall["command"];

const FIRST_VERSION_WITH: Readonly<Record<CallCommand, CniVersion>> = {
  ADD: "0.1.0",
  DEL: "0.1.0",
  CHECK: "0.4.0",
  GC: "1.1.0",
  STATUS: "1.1.0",
};

/** The config's `name`. */
export function networkNameOf(config: JsonObject): string {
  const problem = networkNameProblem(config);
  if (problem === undefined) return String(config["name"]);
  throw new PluginError(problem.kind, `Cannot use the network config: ${problem.state}`);
}

/** The config's `cniVersion`, if the plugin supports it and the command exists in it. */
export function cniVersionOf(config: JsonObject, command: CniCommand, supported: readonly CniVersion[]): CniVersion {
  const wanted = config["cniVersion"] ?? "";
  if (typeof wanted !== "string") {
    const state = `"cniVersion" is ${kindOf(wanted)}, not a string`;
    throw new PluginError("decode-failure", `Cannot use the network config: ${state}`);
  }

  const spelled = wanted === "" ? VERSION_WHEN_ABSENT : wanted;
  const version = supported.find((one) => one === spelled);
  if (version === undefined) {
    const state = `the config requires ${quoted(spelled)}, the plugin supports ${supported.join(", ")}`;
    throw new PluginError("version-incompatible", `Cannot use this cniVersion: ${state}`);
  }
  if (command === "VERSION" || isAtLeast(version, FIRST_VERSION_WITH[command])) return version;
  const state = `it requires cniVersion "${FIRST_VERSION_WITH[command]}" or later, the config has ${quoted(version)}`;
  throw new PluginError("version-incompatible", `Cannot run ${command}: ${state}`);
}

/** Combines a checked environment and a parsed config. */
export function composeCall(
  command: CallCommand,
  environment: Environment,
  input: { readonly stdin: Uint8Array; readonly config: JsonObject; readonly cniVersion: CniVersion },
): CniCall {
  const { config, cniVersion, stdin } = input;
  const shared = {
    cniVersion,
    networkName: networkNameOf(config),
    config,
    stdin,
    environment,
    path: pluginDirectories(environment),
  };
  if (command === "STATUS") return { command, ...shared };
  if (command === "GC") return { command, ...shared, validAttachments: decodeValidAttachments(config) };

  const attachment = {
    ...shared,
    containerId: environment["CNI_CONTAINERID"] ?? "",
    ifname: environment["CNI_IFNAME"] ?? "",
    args: environment["CNI_ARGS"] ?? "",
    prevResult: decodePrevResult(config, cniVersion),
  };
  const netns = environment["CNI_NETNS"] ?? "";
  if (command === "DEL") return { command, ...attachment, netns: netns === "" ? undefined : netns };
  return { command, ...attachment, netns };
}
