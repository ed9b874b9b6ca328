/** What the bare machine takes from the apt of this one. Pure: works on the texts of its files. */

const DEBIAN_KEYRING = "debian-archive-keyring";

/**
 * The files of apt's sources that are Debian's own. Others (a newer Node.js, an
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

/** Proxies, retries and the like: the part `Acquire` of `apt-config dump`, without what apt has by itself. */
export function acquireSettings(dump: string): string {
  const lines = dump.split("\n").filter((line) => /^Acquire::\S+ ".+";$/.test(line));
  return `${lines.join("\n")}\n`;
}
