/** `about 40 s`, `about 3 min` */
export function durationText(seconds: number): string {
  if (seconds < 1) return "no time";
  return seconds < 100 ? `about ${Math.ceil(seconds)} s` : `about ${Math.ceil(seconds / 60)} min`;
}
