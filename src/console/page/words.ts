/** Numbers and times for people. Pure. */

/** `now`, `8 s`, `3 min`, `2 h`, `4 d`. */
export function ageWords(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1_000);
  if (seconds < 2) return "now";
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} d`;
}

/** `now`, `8 s ago`. */
export function agoWords(milliseconds: number): string {
  const age = ageWords(milliseconds);
  return age === "now" ? age : `${age} ago`;
}

const GROUPED = new Intl.NumberFormat("en");

/** `1,234,567`, also of decimal text. */
export function numberWords(value: number | string): string {
  return GROUPED.format(typeof value === "string" ? BigInt(value) : value);
}

/** Of what is too large to read as digits: `1.2 × 10^24`. */
export function sizeWords(decimal: string): string {
  if (decimal.length <= 12) return numberWords(decimal);
  return `${decimal.slice(0, 1)}.${decimal.slice(1, 2)} × 10^${decimal.length - 1}`;
}

/** `42 %`, `0.4 %`, `< 0.1 %`. */
export function shareWords(share: number): string {
  const percent = share * 100;
  if (percent === 0) return "0 %";
  if (percent < 0.1) return "< 0.1 %";
  return `${percent < 10 && percent % 1 !== 0 ? percent.toFixed(1) : Math.round(percent)} %`;
}

const two = (value: number) => String(value).padStart(2, "0");

/** `14:05:06`, where the reader is. */
export function clockWords(milliseconds: number): string {
  const date = new Date(milliseconds);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
}

/** `2026-01-31 14:05`, where the reader is. */
export function dateWords(milliseconds: number): string {
  const date = new Date(milliseconds);
  const day = [date.getFullYear(), date.getMonth() + 1, date.getDate()].map(two).join("-");
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** With the date if it is not that of `now`. */
export function timeWords(milliseconds: number, now: number): string {
  const isToday = new Date(milliseconds).toDateString() === new Date(now).toDateString();
  return isToday ? clockWords(milliseconds) : dateWords(milliseconds);
}

/** Exact, for a title. */
export function exactTime(milliseconds: number): string {
  const date = new Date(milliseconds);
  return Number.isNaN(date.getTime()) ? String(milliseconds) : date.toISOString();
}
