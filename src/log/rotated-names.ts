/**
 * The names of rotated log files (`cni.log` -> `cni-2026-11-15T03-22-14.123.log`)
 * and which of them to remove. Pure: the directory is listed elsewhere.
 */
export interface Retention {
  /** Rotated files older than this are removed; 0 keeps them at any age. */
  readonly maxAgeDays: number;
  /** Rotated files beyond this number are removed, the oldest first; 0 keeps them all. */
  readonly maxCount: number;
}

const MILLISECONDS_PER_DAY = 86_400_000;
const STAMP = /^(\d{4}-\d{2}-\d{2})T(\d{2})-(\d{2})-(\d{2}\.\d{3})$/;

/** The file name (without directory) of the log file at `path` when it is rotated at `time`. */
export function rotatedName(path: string, time: Date): string {
  const { name, ending } = partsOf(path);
  return `${name}-${time.toISOString().replaceAll(":", "-").replace("Z", "")}${ending}`;
}

/** Of the file names in the log directory, those that retention removes. */
export function namesToRemove(path: string, names: readonly string[], keep: Retention, now: Date): readonly string[] {
  const rotated = names
    .flatMap((name) => {
      const time = timeOfRotation(path, name);
      return time === undefined ? [] : [{ name, time }];
    })
    .sort((left, right) => right.time - left.time);
  const tooMany = (place: number) => keep.maxCount > 0 && place >= keep.maxCount;
  const tooOld = (time: number) => keep.maxAgeDays > 0 && now.getTime() - time > keep.maxAgeDays * MILLISECONDS_PER_DAY;
  return rotated.filter((file, place) => tooMany(place) || tooOld(file.time)).map((file) => file.name);
}

/** `undefined` for every file that is not a rotated file of this log file. */
function timeOfRotation(path: string, candidate: string): number | undefined {
  const { name, ending } = partsOf(path);
  if (!candidate.startsWith(`${name}-`) || !candidate.endsWith(ending)) return undefined;
  const stamp = STAMP.exec(candidate.slice(name.length + 1, candidate.length - ending.length));
  if (stamp === null) return undefined;
  const time = Date.parse(`${stamp[1]}T${stamp[2]}:${stamp[3]}:${stamp[4]}Z`);
  return Number.isNaN(time) ? undefined : time;
}

export function folderOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash < 0 ? "." : path.slice(0, slash) || "/";
}

/** Without `node:path`, which takes a process longer to load than all of this. */
function partsOf(path: string): { readonly name: string; readonly ending: string } {
  const file = path.slice(path.lastIndexOf("/") + 1);
  const dot = file.lastIndexOf(".");
  return dot <= 0 ? { name: file, ending: "" } : { name: file.slice(0, dot), ending: file.slice(dot) };
}
