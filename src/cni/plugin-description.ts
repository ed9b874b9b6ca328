/**
 * The description of a plugin: its about line and the CNI versions it supports.
 * Commands that need nothing else are answered without loading the plugin's code.
 */
import type { Reply } from "./reply.ts";
import { type CniVersion, NEWEST_VERSION } from "./version.ts";

export interface PluginDescription {
  /** Printed on stderr if the plugin is started without a command. */
  readonly about: string;
  /** Ascending. */
  readonly supportedVersions: readonly CniVersion[];
}

/** The reply to VERSION, and to a call without a command; `undefined` for every other command. */
export function replyFromDescription(command: string, description: PluginDescription): Reply | undefined {
  if (command === "") return { exitCode: 0, stdout: "", stderr: aboutText(description) };
  if (command !== "VERSION") return undefined;

  // As in the reference library, stdin is not read: VERSION does not wait for a caller that leaves it open.
  const versions = { cniVersion: newestVersionOf(description), supportedVersions: description.supportedVersions };
  return { exitCode: 0, stdout: `${JSON.stringify(versions)}\n`, stderr: "" };
}

export function newestVersionOf(description: PluginDescription): CniVersion {
  return description.supportedVersions.at(-1) ?? NEWEST_VERSION;
}

function aboutText({ about, supportedVersions }: PluginDescription): string {
  return `${about}\nCNI versions: ${supportedVersions.join(", ")}\n`;
}
