/**
 * The files of a network, byte for byte those of upstream's host-local, so that
 * either program carries on where the other stopped:
 *
 *   <network>/10.1.2.3             containerID CRLF ifname: the reservation itself
 *   <network>/last_reserved_ip.0   the address that set 0 gave last
 *   <network>/lock                 flocked around every change
 *
 * Every function here wants the lock held. A reservation is created empty and
 * filled at once: one that is empty while the lock is ours was left by a
 * process that died in between, and belongs to nobody.
 */
import { createText, overwriteText, readText, removeFile, writeText } from "../../linux/files.ts";

/** Who holds an address. Old files name the container alone. */
export interface Owner {
  readonly containerId: string;
  readonly ifname?: string | undefined;
}

export interface Reservation {
  readonly address: string;
  /** `undefined`: abandoned by a process that died. */
  readonly owner: Owner | undefined;
}

const LINE_BREAK = "\r\n";
export const LAST_RESERVED = "last_reserved_ip.";

export function ownerText({ containerId, ifname }: Owner): string {
  return ifname === undefined ? containerId : `${containerId}${LINE_BREAK}${ifname}`;
}

/** White space around the text does not count. */
function parseOwner(content: string): Owner | undefined {
  const trimmed = content.trim();
  if (trimmed === "") return undefined;
  const end = trimmed.indexOf(LINE_BREAK);
  if (end < 0) return { containerId: trimmed };
  return { containerId: trimmed.slice(0, end), ifname: trimmed.slice(end + LINE_BREAK.length) };
}

/** Answers `false` where somebody holds the address. */
export function reserve(directory: string, address: string, owner: Owner): boolean {
  return createText(`${directory}/${address}`, ownerText(owner));
}

export function readReservation(directory: string, address: string): Reservation | undefined {
  const content = readText(`${directory}/${address}`);
  return content === undefined ? undefined : { address, owner: parseOwner(content) };
}

export function release(directory: string, address: string): boolean {
  return removeFile(`${directory}/${address}`);
}

/** What set `index` gave last; it may have been freed since, or lie outside of today's ranges. */
export function readLastReserved(directory: string, index: number): string | undefined {
  return readText(`${directory}/${LAST_RESERVED}${index}`);
}

/** `before` is what the file says; an address that covers it needs no truncation, which is slow. */
export function writeLastReserved(directory: string, index: number, address: string, before: string): void {
  const write = address.length < before.length ? writeText : overwriteText;
  write(`${directory}/${LAST_RESERVED}${index}`, address);
}
