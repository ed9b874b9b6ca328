/**
 * What a plugin says of itself before it does anything: its about line and its
 * versions. Answered without the plugin's own code, which is most of what a
 * process would have to load.
 */
import type { Answer } from "./answer.ts";
import { type CniVersion, NEWEST_VERSION } from "./version.ts";

export interface PluginFace {
  /** One line on stderr for whoever starts the plugin by hand. */
  readonly about: string;
  /** Ascending. */
  readonly supportedVersions: readonly CniVersion[];
}

/** The answer to VERSION, and to no command at all; `undefined` for every other command. */
export function faceAnswer(command: string, face: PluginFace): Answer | undefined {
  if (command === "") return { exitCode: 0, stdout: "", stderr: aboutText(face) };
  if (command !== "VERSION") return undefined;

  // As the reference library does: stdin is not read, so nobody who leaves it open makes VERSION wait.
  const versions = { cniVersion: newestVersionOf(face), supportedVersions: face.supportedVersions };
  return { exitCode: 0, stdout: `${JSON.stringify(versions)}\n`, stderr: "" };
}

export function newestVersionOf(face: PluginFace): CniVersion {
  return face.supportedVersions.at(-1) ?? NEWEST_VERSION;
}

function aboutText({ about, supportedVersions }: PluginFace): string {
  return `${about}\nCNI versions: ${supportedVersions.join(", ")}\n`;
}
