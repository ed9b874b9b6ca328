/** Pools and blocks in numbers and few words. Pure. */
import { counted } from "../../../counted.ts";
import { type Address, formatAddress, stepAddress } from "../../../ip/address.ts";
import { parsePrefix } from "../../../ip/prefix.ts";
import { ADDRESS_USES, type AddressUse, type Block, type Pool } from "../../api/addresses.ts";
import { dateWords, numberWords, shareWords } from "../words.ts";

/** Each with a shape of its own in the map; the order of the legend. */
export const USES = ["u", "b", "t", "k", "R", "r", "l", "."] as const satisfies readonly AddressUse[];

export const USE_NAMES: Readonly<Record<AddressUse, string>> = {
  u: "used",
  b: "borrowed",
  t: "tunnel",
  k: "kept",
  R: "resting",
  r: "reserved",
  l: "leaked",
  ".": "free",
};

/** Beside the colour. Used and free ones have the fill. */
export const USE_SIGNS: Readonly<Record<AddressUse, string>> = {
  u: "",
  b: "↗",
  t: "⇄",
  k: "…",
  R: "~",
  r: "×",
  l: "!",
  ".": "",
};

export function isAddressUse(letter: string): letter is AddressUse {
  return Object.hasOwn(ADDRESS_USES, letter);
}

export interface UseShare {
  readonly use: AddressUse;
  readonly count: number;
  /** Of the whole pool. */
  readonly share: number;
}

/** What the addresses of a pool are, in the order of the legend; the parts are the whole. */
export function sharesOf({ counts }: Pool): readonly UseShare[] {
  const { used, borrowed, leaked, kept, reserved, resting } = counts;
  const size = Number(counts.size);
  const free = Math.max(0, size - used - reserved - resting);
  const counted: Readonly<Record<AddressUse, number>> = {
    u: Math.max(0, used - borrowed - leaked - kept),
    b: borrowed,
    t: 0,
    k: kept,
    R: resting,
    r: reserved,
    l: leaked,
    ".": free,
  };
  return USES.map((use) => ({ use, count: counted[use], share: size === 0 ? 0 : counted[use] / size })).filter(
    ({ count }) => count > 0,
  );
}

export function usedShare({ counts: { used, size } }: Pool): number {
  return Number(size) === 0 ? 0 : used / Number(size);
}

const DAY = 86_400_000;

/** `full in 11 days, at 34 addresses per day`. */
export function forecastWords({ forecast }: Pool, now: number): string | undefined {
  if (forecast === undefined) return undefined;
  const { exhausted, perDay, fromDays } = forecast;
  const days = Math.floor((exhausted - now) / DAY);
  const when =
    days < 1
      ? "full within a day"
      : days > 730
        ? `full in ${Math.floor(days / 365)} years`
        : `full in ${counted(days, "day")}`;
  return `${when}, at ${numberWords(perDay)} addresses per day as in the last ${counted(fromDays, "day")}`;
}

const SOON_DAYS = 30;

export function isFullSoon({ forecast }: Pool, now: number): boolean {
  return forecast !== undefined && forecast.exhausted - now < SOON_DAYS * DAY;
}

export function forecastLabel(pool: Pool): string {
  const { forecast, counts } = pool;
  if (forecast === undefined) return "";
  return `${numberWords(counts.used)} of ${numberWords(counts.size)} addresses are used; all of them on ${dateWords(forecast.exhausted)}`;
}

/** The addresses of a block, one for each letter of its use. */
export function addressesIn({ cidr, use = "" }: Block): readonly string[] {
  const prefix = parsePrefix(cidr);
  if (prefix === undefined) return [];
  const at = (offset: number): Address | undefined => stepAddress(prefix.network, BigInt(offset));
  return Array.from(use, (_, offset) => {
    const address = at(offset);
    return address === undefined ? "" : formatAddress(address);
  });
}

/** What differs in a block: the last part. */
export function shortAddress(address: string): string {
  const end = address.includes(":") ? address.lastIndexOf(":") : address.lastIndexOf(".");
  return address.slice(end) === ":" ? ":0" : address.slice(end);
}

export interface BlockFill {
  readonly size: number;
  readonly used: number;
  readonly leaked: number;
  readonly borrowed: number;
}

/** Of a block whose addresses are not listed, only how many are free is known. */
export function fillOf({ use, free, cidr }: Block): BlockFill {
  if (use === undefined) {
    const prefix = parsePrefix(cidr);
    const bits = prefix === undefined ? 0 : (prefix.network.family === 4 ? 32 : 128) - prefix.length;
    const size = 2 ** bits;
    return { size, used: size - free, leaked: 0, borrowed: 0 };
  }
  let [used, leaked, borrowed] = [0, 0, 0];
  for (const letter of use) {
    if (letter === "l") leaked += 1;
    if (letter === "b") borrowed += 1;
    if ("ubltk".includes(letter)) used += 1;
  }
  return { size: use.length, used, leaked, borrowed };
}

export function blockWords(block: Block): string {
  const { size, used, leaked, borrowed } = fillOf(block);
  return [
    `${block.cidr}, ${block.node ?? "no node"}: ${numberWords(used)} of ${numberWords(size)} used (${shareWords(size === 0 ? 0 : used / size)})`,
    ...(leaked > 0 ? [`${leaked} leaked`] : []),
    ...(borrowed > 0 ? [`${borrowed} borrowed`] : []),
  ].join(", ");
}
