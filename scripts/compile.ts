/** Compiles one entry into one executable, in the way the product ships: bytecode, and nothing loaded from the current folder. */
import { existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export type Target = "bun-linux-x64" | "bun-linux-arm64";

export interface Compilation {
  readonly entry: string;
  readonly executable: string;
  /** Takes the place of the default identity. */
  readonly identityFile?: string;
  /** Absent: this host's. */
  readonly target?: Target | undefined;
  /** `with`: a test build that can be ended at any point of its work; what ships is without. */
  readonly crashPoints?: "with" | "without";
}

/** Stands beside the entry, where it has parts to load. */
const PARTS = "parts.ts";

export async function compileExecutable({
  entry,
  executable,
  identityFile,
  target,
  crashPoints,
}: Compilation): Promise<void> {
  const unfinished = `${executable}.new`;
  const folder = mkdtempSync(join(tmpdir(), "vt-compile-"));
  const plugins = identityFile === undefined ? [] : [identityPlugin(identityFile)];
  const shared = {
    minify: true,
    format: "esm",
    // Without it every `import "node:…"` of every part, called or not, runs at the start of every program.
    splitting: true,
    sourcemap: "none",
    define: { FAULTS: String(crashPoints === "with") },
  } as const;
  const parts = join(dirname(entry), PARTS);
  try {
    const bundled = existsSync(parts) ? [partsPlugin(await bundle(parts, { ...shared, plugins, outdir: folder }))] : [];
    const built = await Bun.build({
      ...shared,
      entrypoints: [entry],
      bytecode: true,
      compile: {
        outfile: unfinished,
        autoloadDotenv: false,
        autoloadBunfig: false,
        // A plugin lives for some milliseconds: code that is compiled in that time is never run often enough to pay.
        // Measured 1.5 ms of processor time and 3 MB less for an ADD. A part that works for longer asks for the usual policy.
        jitPolicy: 1000,
        // Certificates are judged by the host's roots, as every program of the host does, beside those that come with Bun.
        execArgv: ["--use-system-ca"],
        ...(target === undefined ? {} : { target }),
      },
      plugins: [...plugins, ...bundled],
    });
    if (!built.success) throw new AggregateError(built.logs, `Cannot build "${executable}"`);
  } finally {
    rmSync(folder, { recursive: true });
  }

  // Renamed into place: a runtime that executes the old file never sees a half-written one.
  renameSync(unfinished, executable);
}

/**
 * Whatever the entry shares with the parts would become a piece of its own, and
 * the entry a dozen pieces, each loaded at every start. Bundled before, the
 * parts have their own copy of it, and the entry is one piece.
 */
function partsPlugin(bundled: string): Bun.BunPlugin {
  return {
    name: "parts",
    setup(builder) {
      builder.onResolve({ filter: new RegExp(`/${PARTS}$`) }, () => ({ path: bundled }));
    },
  };
}

async function bundle(
  parts: string,
  options: Omit<Bun.BuildConfig, "entrypoints"> & { outdir: string },
): Promise<string> {
  const built = await Bun.build({ ...options, entrypoints: [parts], target: "bun" });
  if (!built.success) throw new AggregateError(built.logs, `Cannot build "${parts}"`);
  return join(options.outdir, PARTS.replace(".ts", ".js"));
}

function identityPlugin(identityFile: string): Bun.BunPlugin {
  return {
    name: "identity",
    setup(builder) {
      builder.onResolve({ filter: /identity\/vendor\.json$/ }, () => ({ path: identityFile }));
    },
  };
}
