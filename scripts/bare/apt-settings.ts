/** The apt settings of this machine that the bare machine uses. Pure: works on the texts of their files. */

const DEBIAN_KEYRING = "debian-archive-keyring";

/**
 * The files of apt sources that belong to Debian. Others (a newer Node.js, an
 * editor) would make the machine less bare, and their keys are not known there.
 */
export function debianSources(files: ReadonlyMap<string, string>, codename: string): readonly string[] {
  return [...files].filter(([, text]) => isOfDebian(text, codename)).map(([path]) => path);
}

function isOfDebian(text: string, codename: string): boolean {
  const lines = text.split("\n").filter((line) => !/^\s*(#|$)/.test(line));
  if (!lines.some((line) => line.split(/\s+/).includes(codename))) return false;
  return lines.every((line) => !/signed-by/i.test(line) || line.includes(DEBIAN_KEYRING));
}

/** The addresses of a file's entries of that release; an entry is a line or a paragraph. */
export function archivesIn(text: string, codename: string): readonly string[] {
  const entries = /^Types:/m.test(text) ? text.split(/\n\s*\n/) : text.split("\n");
  return entries
    .map((entry) => entry.replaceAll(/^\s*#.*$/gm, "").split(/\s+/))
    .filter((words) => words.includes(codename))
    .flatMap((words) => words.filter((word) => /^https?:/.test(word)).map((word) => word.replace(/\/$/, "")));
}

/** Proxies, retries and similar settings: the section `Acquire` of `apt-config dump`, without empty defaults. */
export function acquireSettings(dump: string): string {
  const lines = dump.split("\n").filter((line) => /^Acquire::\S+ ".+";$/.test(line));
  return `${lines.join("\n")}\n`;
}
