/**
 * Reads the files that a config names: the node name file, and the first byte of
 * keys and certificates to see whether they are readable. The only file of this
 * directory with effects. It uses Bun's file API, since importing node:fs would
 * slow down every call of the plugin.
 */
import type { CniCall } from "../cni/call.ts";
import { PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import { isNodeName } from "../model/node-name.ts";
import { configInvalid } from "./decode.ts";
import type { NamedFile } from "./named-files.ts";
import type { NetworkConfig } from "./network-config.ts";
import { chooseNodeName } from "./node-name.ts";
import { type ConfigPath, type ConfigProblem, pathText, shownValue } from "./problem.ts";

/** The node agent writes the name of its node there. */
export const DEFAULT_NODE_NAME_FILE = `${identity.stateDirectory}/nodename`;
/** The history of the flows of this node. */
export const FLOW_HISTORY_DIRECTORY = `${identity.stateDirectory}/flows`;

/** Returns one problem for each key, certificate or kubeconfig in the config that cannot be read. */
export async function unreadableFiles(files: readonly NamedFile[]): Promise<readonly ConfigProblem[]> {
  const found = files.map(async ({ path, file }) => {
    const reason = await whyUnreadable(file);
    return reason === undefined ? [] : [unreadable(path, file, reason)];
  });
  return (await Promise.all(found)).flat();
}

/** Replaces the failure to read a file by problems of the fields that name unreadable files; returns any other failure unchanged. */
export async function namingFields(failure: unknown, files: readonly NamedFile[]): Promise<unknown> {
  if (!(failure instanceof PluginError) || failure.kind !== "io-failure") return failure;
  const problems = await unreadableFiles(files);
  return problems.length === 0 ? failure : configInvalid(problems);
}

/** A DEL uses the host name if the node name cannot be read: it must not fail for that reason. */
export async function nodeNameFor(
  { command }: Pick<CniCall, "command">,
  config: NetworkConfig,
  hostName: () => Promise<string>,
): Promise<string> {
  try {
    return await readNodeName(config, hostName);
  } catch (failure) {
    if (command === "DEL") return chooseNodeName({ hostName: await hostName() });
    throw failure;
  }
}

/** Reads the file only if the config has no node name; a file named in the config must exist unless it is optional. */
export async function readNodeName(
  config: Pick<NetworkConfig, "node">,
  hostName: () => Promise<string>,
): Promise<string> {
  const { name, nameFile, nameFileOptional } = config.node;
  if (name?.trim()) return chooseNodeName({ nodename: name });

  const file = nameFile ?? DEFAULT_NODE_NAME_FILE;
  const mayBeMissing = nameFile === undefined || nameFileOptional;
  const fileText = await readOptionalFile(file, mayBeMissing);
  const chosen = chooseNodeName({ fileText }) || chooseNodeName({ hostName: await hostName() });
  if (isNodeName(chosen)) return chosen;
  const source = fileText?.trim() ? `the content of file ${shownValue(file)},` : "host name";
  throw new PluginError(
    "config-invalid",
    `Cannot determine the node name: ${source} ${shownValue(chosen)} is not a valid node name`,
  );
}

async function readOptionalFile(file: string, mayBeMissing: boolean): Promise<string | undefined> {
  try {
    return await Bun.file(file).text();
  } catch (cause) {
    if (mayBeMissing && errorCode(cause) === "ENOENT") return undefined;
    const { message } = unreadable(["nodename_file"], file, reasonOf(cause));
    throw new PluginError("config-invalid", `Cannot determine the node name: ${message}`, { cause });
  }
}

function unreadable(path: ConfigPath, file: string, reason: string): ConfigProblem {
  const state = `is ${shownValue(file)}, which cannot be read (${reason})`;
  return {
    path,
    message: `"${pathText(path)}" ${state}: expected a readable file; correct the path or the permissions`,
  };
}

async function whyUnreadable(file: string): Promise<string | undefined> {
  try {
    await Bun.file(file).slice(0, 1).bytes();
    return undefined;
  } catch (cause) {
    return reasonOf(cause);
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  EACCES: "permission denied",
  EISDIR: "it is a directory",
  ENOTDIR: "part of its path is not a directory",
  EPERM: "operation not permitted",
  EROFS: "the filesystem is read-only",
  ENOSPC: "no space left on the filesystem",
  EEXIST: "a file has its name",
  ENAMETOOLONG: "its path is too long",
};

/** Why a file cannot be read or written. The system's own message would contain the path, unredacted. */
export function reasonOf(cause: unknown): string {
  if (cause instanceof PluginError) return cause.message;
  const code = errorCode(cause) ?? "unknown error";
  return REASONS[code] ?? code;
}

function errorCode(cause: unknown): string | undefined {
  return cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : undefined;
}
