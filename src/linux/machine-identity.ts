/**
 * Identifies this machine, so that two hosts that claim one node name are noticed.
 *
 *   STATE DIRECTORY/machine-id   else   /etc/machine-id   else   a generated one, in the first file
 *
 * The first file can be written by an operator for cloned machines that share /etc/machine-id.
 */
import { hashMachineId } from "../model/machine-annotation.ts";
import { readText, writeText } from "./files.ts";

const SYSTEM_FILE = "/etc/machine-id";

export interface MachineIdFiles {
  readonly stateDirectory: string;
  /** Absent: /etc/machine-id. */
  readonly systemFile?: string;
}

/** `undefined` if this machine has no ID. */
export function readMachineIdentity({ stateDirectory, systemFile = SYSTEM_FILE }: MachineIdFiles): string | undefined {
  const id = readId(fileIn(stateDirectory)) ?? readId(systemFile);
  return id === undefined ? undefined : hashMachineId(id);
}

/** Generates an ID for a machine that has none. */
export async function ensureMachineIdentity(files: MachineIdFiles, uuid: () => string): Promise<string> {
  const known = readMachineIdentity(files);
  if (known !== undefined) return known;
  const { mkdir } = await import("node:fs/promises");
  await mkdir(files.stateDirectory, { recursive: true, mode: 0o755 });
  writeText(fileIn(files.stateDirectory), `${uuid().replaceAll("-", "")}\n`);
  return readMachineIdentity(files) ?? "";
}

function fileIn(stateDirectory: string): string {
  return `${stateDirectory}/machine-id`;
}

/** systemd writes "uninitialized" until the first boot has finished. */
function readId(file: string): string | undefined {
  const text = readText(file)?.trim();
  return text === undefined || text === "" || text === "uninitialized" ? undefined : text;
}
