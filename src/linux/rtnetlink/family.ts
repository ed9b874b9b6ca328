/** The kernel's numbers of the address families. */
import type { Family } from "../../ip/address.ts";

const AF_INET = 2;
const AF_INET6 = 10;

/** If absent: both families. */
export function familyNumber(family: Family | undefined): number {
  if (family === undefined) return 0;
  return family === 4 ? AF_INET : AF_INET6;
}

/** `undefined` for a family other than IPv4 and IPv6. */
export function familyOfNumber(number: number): Family | undefined {
  if (number === AF_INET) return 4;
  return number === AF_INET6 ? 6 : undefined;
}
