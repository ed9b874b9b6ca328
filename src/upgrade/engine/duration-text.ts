/** `about 40 s`, `about 3 min`, `about 28 h` */
export function durationText(seconds: number): string {
  if (seconds < 1) return "no time";
  if (seconds < 100) return `about ${Math.ceil(seconds)} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 100 ? `about ${minutes} min` : `about ${Math.ceil(minutes / 60)} h`;
}
