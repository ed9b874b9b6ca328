/**
 * Which processes have the sockets of a port of this host, from /proc.
 *
 * Reads the command lines of all processes: only for the rare case that a port is in use.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export interface HostPort {
  readonly protocol: "tcp" | "udp";
  readonly port: number;
}

/**
 * Whether every socket that waits on the port belongs to a process with such a command line. `false` if there is no
 * such socket, or if a process cannot be looked at.
 */
export function isPortHeldBy(host: HostPort, isHolder: (commandLine: readonly string[]) => boolean): boolean {
  const waiting = [host.protocol, `${host.protocol}6`].flatMap((table) =>
    waitingSockets(textOf(`/proc/thread-self/net/${table}`), host),
  );
  if (waiting.length === 0) return false;
  const held = new Set(namesIn("/proc").flatMap((name) => (isHeldCommand(name, isHolder) ? socketsOf(name) : [])));
  return waiting.every((inode) => held.has(inode));
}

const LISTENING = { tcp: "0A", udp: "07" } as const;

/** The inodes in a table such as /proc/net/tcp. */
export function waitingSockets(table: string, { protocol, port }: HostPort): readonly string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  return table.split("\n").flatMap((line) => {
    const [, local = "", , state, , , , , , inode] = line.trim().split(/\s+/);
    return local.endsWith(suffix) && state === LISTENING[protocol] && inode !== undefined ? [inode] : [];
  });
}

function isHeldCommand(name: string, isHolder: (commandLine: readonly string[]) => boolean): boolean {
  return /^\d+$/.test(name) && isHolder(textOf(`/proc/${name}/cmdline`).split("\0"));
}

function socketsOf(process: string): readonly string[] {
  const folder = `/proc/${process}/fd`;
  return namesIn(folder).flatMap((name) => /^socket:\[(\d+)\]$/.exec(linkOf(`${folder}/${name}`))?.[1] ?? []);
}

/** A process may end at any moment. */
function namesIn(folder: string): readonly string[] {
  return orElse(() => readdirSync(folder), []);
}

function textOf(file: string): string {
  return orElse(() => readFileSync(file, "utf8"), "");
}

function linkOf(file: string): string {
  return orElse(() => readlinkSync(file), "");
}

function orElse<Result>(read: () => Result, otherwise: Result): Result {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
