/**
 * The files of a network, byte for byte in the format of upstream's host-local, so that
 * either program can continue with the files of the other:
 *
 *   <network>/10.1.2.3             containerID CRLF ifname: the reservation itself
 *   <network>/last_reserved_ip.0   the address that was assigned last from set 0
 *   <network>/lock                 flocked around every change
 *
 * The caller of every function here must hold the lock. A reservation is created empty
 * and written at once: one that is still empty when the lock is free was left by a
 * process that was killed in between, and belongs to nobody.
 */
import { createText, overwriteText, readText, removeFile, writeText } from "../../linux/files.ts";

/** The owner of an address. Old files contain only the container ID. */
export interface Owner {
  readonly containerId: string;
  readonly ifname?: string | undefined;
}

export interface Reservation {
  readonly address: string;
  /** `undefined`: left empty by a process that was killed. */
  readonly owner: Owner | undefined;
}

const LINE_BREAK = "\r\n";
export const LAST_RESERVED = "last_reserved_ip.";

export function ownerText({ containerId, ifname }: Owner): string {
  return ifname === undefined ? containerId : `${containerId}${LINE_BREAK}${ifname}`;
}

/** Leading and trailing white space is ignored. */
function parseOwner(content: string): Owner | undefined {
  const trimmed = content.trim();
  if (trimmed === "") return undefined;
  const end = trimmed.indexOf(LINE_BREAK);
  if (end < 0) return { containerId: trimmed };
  return { containerId: trimmed.slice(0, end), ifname: trimmed.slice(end + LINE_BREAK.length) };
}

/** Returns `false` if the address is reserved already. */
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

/** The address assigned last from set `index`; it may have been released since, or be outside the current ranges. */
export function readLastReserved(directory: string, index: number): string | undefined {
  return readText(`${directory}/${LAST_RESERVED}${index}`);
}

/** `before` is the content of the file; an address of at least its length needs no truncation, which is slow. */
export function writeLastReserved(directory: string, index: number, address: string, before: string): void {
  const write = address.length < before.length ? writeText : overwriteText;
  write(`${directory}/${LAST_RESERVED}${index}`, address);
}
