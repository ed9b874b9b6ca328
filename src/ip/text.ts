/**
 * Parses and prints the text of addresses: IPv4 as one 32-bit number, IPv6 as eight
 * 16-bit groups. Parsing is strict, the printed form is canonical.
 */
const GROUP = /^[0-9a-fA-F]{1,4}$/;
const GROUPS = 8;
const ZERO = "0".charCodeAt(0);
/** The dot's code relative to the digit zero. */
const DOT = ".".charCodeAt(0) - ZERO;

/** With a loop: the first use of a regular expression costs a new process more than the rest of the parsing. */
export function parseIpv4(text: string): number | undefined {
  let value = 0;
  let octet = -1;
  let dots = 0;
  for (let index = 0; index < text.length; index += 1) {
    const digit = text.charCodeAt(index) - ZERO;
    if (digit === DOT) {
      if (octet < 0 || dots === 3) return undefined;
      value = value * 256 + octet;
      octet = -1;
      dots += 1;
    } else {
      // A digit after a leading zero: some programs read that as octal.
      if (digit < 0 || digit > 9 || octet === 0) return undefined;
      octet = octet < 0 ? digit : octet * 10 + digit;
      if (octet > 255) return undefined;
    }
  }
  return dots === 3 && octet >= 0 ? value * 256 + octet : undefined;
}

export function formatIpv4(value: number): string {
  return `${value >>> 24}.${(value >>> 16) & 255}.${(value >>> 8) & 255}.${value & 255}`;
}

export function parseIpv6(text: string): readonly number[] | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;

  const [head = "", tail] = halves;
  if (tail === undefined) {
    const groups = parseGroups(head);
    return groups?.length === GROUPS ? groups : undefined;
  }

  const before = head === "" ? [] : parseGroups(head);
  const after = tail === "" ? [] : parseGroups(tail);
  // An IPv4 part is allowed only at the very end: `1.2.3.4::` is not an address.
  if (!before || !after || head.includes(".")) return undefined;
  // "::" stands for at least one group.
  const missing = GROUPS - before.length - after.length;
  if (missing < 1) return undefined;
  return [...before, ...new Array<number>(missing).fill(0), ...after];
}

function parseGroups(text: string): number[] | undefined {
  const pieces = text.split(":");
  const groups: number[] = [];
  for (const [index, piece] of pieces.entries()) {
    if (GROUP.test(piece)) {
      groups.push(Number.parseInt(piece, 16));
      continue;
    }
    const ipv4 = index === pieces.length - 1 ? parseIpv4(piece) : undefined;
    if (ipv4 === undefined) return undefined;
    groups.push(ipv4 >>> 16, ipv4 & 0xffff);
  }
  return groups;
}

/** RFC 5952: lower case, no leading zeros, the longest run of two or more zero groups (the first of equals) as "::". */
export function formatIpv6(groups: readonly number[]): string {
  if (isMapped(groups)) return `::ffff:${formatIpv4((groups[6] ?? 0) * 65536 + (groups[7] ?? 0))}`;

  const run = longestZeroRun(groups);
  if (run.length < 2) return formatGroups(groups);
  return `${formatGroups(groups.slice(0, run.start))}::${formatGroups(groups.slice(run.start + run.length))}`;
}

function formatGroups(groups: readonly number[]): string {
  return groups.map((group) => group.toString(16)).join(":");
}

function isMapped(groups: readonly number[]): boolean {
  return groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
}

function longestZeroRun(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 };
  let start = 0;
  for (let index = 0; index <= groups.length; index += 1) {
    if (groups[index] === 0) continue;
    if (index - start > best.length) best = { start, length: index - start };
    start = index + 1;
  }
  return best;
}
