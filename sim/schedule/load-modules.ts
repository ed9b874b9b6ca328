/**
 * Loads what the product imports only when it needs it. The first such import reads a file, which takes real time: the
 * rest of a simulation would run on meanwhile, at another moment in each run. An import of what is loaded continues in
 * the same event, but after more of what else continues in it: so parts that are imported once are, before any seed.
 */
import { dirname, join } from "node:path";
import { loadAllParts } from "../../src/load-once.ts";

const ROOT = join(import.meta.dir, "../../src");
const IMPORT = /[^\w:]import\("(\.[^"]+\.ts)"\)/g;
/** They start a program when they are imported, or import those that do. */
const PROGRAMS = /^bin\/(main|call|node|admin|controllers|operator|sidecar)\.ts$/;

let loading: Promise<void> | undefined;

export async function loadModules(): Promise<void> {
  loading ??= loadAll();
  await loading;
  await loadAllParts();
}

async function loadAll(): Promise<void> {
  for (const module of await importedModules()) await import(join(ROOT, module));
}

async function importedModules(): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (const file of [...new Bun.Glob("**/*.ts").scanSync(ROOT)].sort()) {
    if (file.endsWith(".test.ts") || PROGRAMS.test(file)) continue;
    const text = await Bun.file(join(ROOT, file)).text();
    for (const [, module = ""] of text.matchAll(IMPORT)) {
      const path = join(dirname(file), module);
      if (!PROGRAMS.test(path)) found.add(path);
    }
  }
  return found;
}
