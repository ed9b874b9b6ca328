/** `-f`: a file, a directory (its .yaml, .yml and .json files), or - for standard input; can be repeated. */
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";
import { type Context, type Given, UsageError } from "../command.ts";
import type { Option } from "../option.ts";
import { decodeManifests, type GivenResource, type Manifest } from "./manifest.ts";
import { namespaceOf } from "./reference.ts";

export const FILE_OPTION: Option = {
  name: "filename",
  letter: "f",
  value: "FILE",
  repeats: true,
  summary: "File or directory with YAML or JSON documents, or - for standard input; can be repeated",
};

const MANIFEST = /\.(ya?ml|json)$/;

export async function readGivenResources(context: Context, given: Given): Promise<readonly GivenResource[]> {
  const paths = given.lists.get(FILE_OPTION.name) ?? [];
  if (paths.length === 0) throw new UsageError('"-f FILE" is required, or "-f -" for standard input');
  const manifests: Manifest[] = [];
  for (const path of paths) manifests.push(...(await readSource(context, path)));
  const resources = decodeManifests(manifests, namespaceOf(given));
  if (resources.length === 0)
    throw new PluginError("resource-invalid", `Cannot find any resource in ${paths.map(placeOf).join(", ")}`);
  return resources;
}

function placeOf(path: string): string {
  return path === "-" ? "stdin" : path;
}

async function readSource(context: Context, path: string): Promise<readonly Manifest[]> {
  if (path === "-") return [{ place: placeOf(path), text: await context.readStdin() }];
  try {
    const names = await context.listFolder(path);
    if (names === undefined) return [{ place: path, text: await context.readFile(path) }];
    const files = names.filter((name) => MANIFEST.test(name)).map((name) => `${path.replace(/\/$/, "")}/${name}`);
    return await Promise.all(files.map(async (place) => ({ place, text: await context.readFile(place) })));
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    const reason = code === "ENOENT" ? "no such file or directory" : code;
    throw new PluginError("io-failure", `Cannot read ${quoted(path)}: ${reason}`, { cause });
  }
}
