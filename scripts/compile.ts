/** Compiles one entry into one executable, in the way the product ships: bytecode, and nothing loaded from the current folder. */
import { renameSync } from "node:fs";

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

export async function compileExecutable({
  entry,
  executable,
  identityFile,
  target,
  crashPoints,
}: Compilation): Promise<void> {
  const unfinished = `${executable}.new`;
  const built = await Bun.build({
    entrypoints: [entry],
    minify: true,
    format: "esm",
    // Without it every `import "node:…"` of every part, called or not, runs at the start of every program.
    splitting: true,
    sourcemap: "none",
    define: { FAULTS: String(crashPoints === "with") },
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
    plugins: identityFile === undefined ? [] : [identityPlugin(identityFile)],
  });
  if (!built.success) throw new AggregateError(built.logs, `Cannot build "${executable}"`);

  // Renamed into place: a runtime that executes the old file never sees a half-written one.
  renameSync(unfinished, executable);
}

function identityPlugin(identityFile: string): Bun.BunPlugin {
  return {
    name: "identity",
    setup(builder) {
      builder.onResolve({ filter: /identity\/vendor\.json$/ }, () => ({ path: identityFile }));
    },
  };
}
