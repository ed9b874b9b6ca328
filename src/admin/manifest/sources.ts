/** `-f`: a file, a directory (its .yaml, .yml and .json files, with -R also below it), or - for standard input; can be repeated. */

import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";
import { type Given, UsageError } from "../main/command.ts";
import type { Files, Terminal } from "../main/context.ts";
import { MANIFEST, namespaceOf } from "../resources/reference.ts";
import { decodeManifests, type GivenResource, type Manifest, parseManifest, type Reading } from "./manifest.ts";
import { FILE_OPTION, RECURSIVE_OPTION, SKIP_EMPTY_OPTION } from "./options.ts";

/** A symbolic link may lead back to a directory above it. */
const DEEPEST_DIRECTORY = 32;

export async function readGivenResources(
  context: Terminal & Files,
  given: Given,
  more: Pick<Reading, "withOrchestrators"> = {},
): Promise<readonly GivenResource[]> {
  return readDecoded(context, given, (manifests) =>
    decodeManifests(manifests, { namespace: namespaceOf(given), ...more }),
  );
}

/** A document of any kind, with its place for messages. */
export interface GivenDocument {
  readonly place: string;
  readonly value: unknown;
}

/** The documents of `-f`, and the members of their lists, not decoded. */
export async function readGivenDocuments(context: Terminal & Files, given: Given): Promise<readonly GivenDocument[]> {
  return readDecoded(context, given, (manifests) => {
    const parsed = manifests.flatMap(parseManifest);
    const problems = parsed.flatMap((each) => (each.ok ? [] : each.problems));
    if (problems.length === 0) return parsed.flatMap((each) => (each.ok ? [each] : []));
    throw new PluginError("decode-failure", `Cannot read the given documents:\n  ${problems.join("\n  ")}`);
  });
}

async function readDecoded<Each>(
  context: Terminal & Files,
  given: Given,
  decode: (manifests: readonly Manifest[]) => readonly Each[],
): Promise<readonly Each[]> {
  const paths = given.lists.get(FILE_OPTION.name) ?? [];
  if (paths.length === 0) throw new UsageError('"-f FILE" is required, or "-f -" for standard input');
  const manifests: Manifest[] = [];
  const depth = given.switches.has(RECURSIVE_OPTION.name) ? DEEPEST_DIRECTORY : 0;
  for (const path of paths) manifests.push(...(await readSource(context, path, depth)));
  const decoded = decode(manifests);
  if (decoded.length === 0 && !given.switches.has(SKIP_EMPTY_OPTION.name)) {
    const details = manifests.length === 0 ? `only .yaml, .yml and .json files are read${depth === 0 ? HINT : ""}` : "";
    throw new PluginError("resource-invalid", `Cannot find any resource in ${paths.map(placeOf).join(", ")}`, {
      details,
    });
  }
  return decoded;
}

const HINT = "; -R also reads those in subdirectories";

function placeOf(path: string): string {
  return path === "-" ? "stdin" : path;
}

async function readSource(context: Terminal & Files, path: string, depth: number): Promise<readonly Manifest[]> {
  if (path === "-") return [{ place: placeOf(path), text: await readText(context, path) }];
  return explainFailure(path, async () => {
    const names = await context.listFolder(path);
    const files = names === undefined ? [path] : await filesIn(context, path, { names, depth });
    return await Promise.all(files.map(async (place) => ({ place, text: await context.readFile(place) })));
  });
}

/** The text of a file, or of standard input for `-`. */
export function readText(context: Terminal & Files, path: string): Promise<string> {
  return path === "-" ? context.readStdin() : explainFailure(path, () => context.readFile(path));
}

async function explainFailure<Result>(path: string, read: () => Promise<Result>): Promise<Result> {
  try {
    return await read();
  } catch (cause) {
    if (cause instanceof PluginError) throw cause;
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    const reason = READ_FAILURES.get(code) ?? code;
    throw new PluginError("io-failure", `Cannot read ${quoted(path)}: ${reason}`, { cause });
  }
}

const READ_FAILURES = new Map([
  ["ENOENT", "no such file or directory"],
  ["EISDIR", "it is a directory"],
]);

/** `depth`: how many levels of subdirectories are read too. */
async function filesIn(
  context: Files,
  folder: string,
  { names, depth }: { readonly names: readonly string[]; readonly depth: number },
): Promise<readonly string[]> {
  const files: string[] = [];
  for (const name of names) {
    const path = `${folder.replace(/\/$/, "")}/${name}`;
    const inner = depth === 0 ? undefined : await context.listFolder(path);
    if (inner === undefined) files.push(...(MANIFEST.test(name) ? [path] : []));
    else if (depth > 1) files.push(...(await filesIn(context, path, { names: inner, depth: depth - 1 })));
    else
      throw new PluginError(
        "io-failure",
        `Cannot read ${quoted(path)}: more than ${DEEPEST_DIRECTORY} directories deep`,
      );
  }
  return files;
}
