/** Writes what was collected to an archive: without secrets, and for its owner only. */

import { redact } from "../../redaction.ts";
import { type Given, wantsJson } from "../main/command.ts";
import type { Clock, Files, Terminal } from "../main/context.ts";
import { ARCHIVE_OPTION } from "./options.ts";
import { type ArchivedFile, tarOf } from "./tar.ts";

/** What could not be collected, and why. */
export interface Missing {
  readonly what: string;
  readonly reason: string;
}

export interface Collected {
  readonly files: readonly ArchivedFile[];
  readonly missing: readonly Missing[];
}

export async function writeArchive(
  collected: Collected,
  context: Terminal & Files & Clock,
  given: Given,
): Promise<void> {
  const now = context.now();
  const folder = `diags-${now.toISOString().replace(/[-:]/g, "").replace(/\..*$/, "")}`;
  const file = given.values.get(ARCHIVE_OPTION.name) ?? `${folder}.tar.gz`;
  const missing = collected.missing.map(({ what, reason }) => `${what}: ${reason}\n`).join("");
  const files = [...collected.files, ...(missing === "" ? [] : [{ path: "missing.txt", text: missing }])];
  const clean = files.map(({ path, text }) => ({ path: `${folder}/${path}`, text: redact(text) }));
  await context.writeArchive(file, Bun.gzipSync(new Uint8Array(tarOf(clean, now))));
  const paths = clean.map(({ path }) => path);
  if (wantsJson(given))
    context.stdout(`${JSON.stringify({ archive: file, files: paths, missing: collected.missing }, undefined, 2)}\n`);
  else context.stdout(`${file}: ${paths.length} files, without secrets\n`);
  for (const { what, reason } of wantsJson(given) ? [] : collected.missing)
    context.stderr(`not collected: ${what}: ${reason}\n`);
}
