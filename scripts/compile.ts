/** Compiles an entry into an executable, as for a release: with bytecode, and without loading anything from the current directory. */
import { readFileSync, renameSync } from "node:fs";
import { bundlePage } from "../src/console/bundle-page.ts";

export type Target = "bun-linux-x64" | "bun-linux-arm64";

export interface Compilation {
  readonly entry: string;
  readonly executable: string;
  /** Replaces the default identity. */
  readonly identityFile?: string;
  /** Absent: this host's. */
  readonly target?: Target | undefined;
  /** `with`: a test build that can be stopped at any point of its work; a release is without. */
  readonly crashPoints?: "with" | "without";
  /** Replaces the version of package.json, for tests of upgrades. */
  readonly version?: string;
}

export async function compileExecutable({
  entry,
  executable,
  identityFile,
  target,
  crashPoints,
  version,
}: Compilation): Promise<void> {
  const unfinished = `${executable}.new`;
  const replacements = [
    ...(identityFile === undefined ? [] : [identityPlugin(identityFile)]),
    ...(version === undefined ? [] : [versionPlugin(version)]),
  ];
  const page = await bundlePage({ ...titleIn(identityFile), plugins: replacements });
  const built = await Bun.build({
    entrypoints: [entry],
    minify: true,
    format: "esm",
    // Without it, every `import "node:…"` of every part, used or not, runs at the start of every program.
    splitting: true,
    sourcemap: "none",
    define: {
      FAULTS: String(crashPoints === "with"),
      // A text in JSON, which is a text for the program too.
      CONSOLE_PAGE: JSON.stringify(JSON.stringify(page)),
    },
    bytecode: true,
    compile: {
      outfile: unfinished,
      autoloadDotenv: false,
      autoloadBunfig: false,
      // A plugin runs for some milliseconds: code compiled in that time never runs often enough to be worth it.
      // Measured: 1.5 ms of CPU time and 3 MB less for an ADD. A part that runs for longer sets the usual policy.
      jitPolicy: 1000,
      // Certificates are verified with the CA certificates of the host, in addition to those of Bun.
      execArgv: ["--use-system-ca"],
      ...(target === undefined ? {} : { target }),
    },
    plugins: replacements,
  });
  if (!built.success) throw new AggregateError(built.logs, `Cannot build "${executable}"`);

  // Renamed into place: a runtime that executes the old file never sees a half-written one.
  renameSync(unfinished, executable);
}

function titleIn(identityFile: string | undefined): { readonly title?: string } {
  return identityFile === undefined ? {} : { title: JSON.parse(readFileSync(identityFile, "utf8")).title };
}

function identityPlugin(identityFile: string): Bun.BunPlugin {
  return {
    name: "identity",
    setup(builder) {
      builder.onResolve({ filter: /identity\/vendor\.json$/ }, () => ({ path: identityFile }));
    },
  };
}

function versionPlugin(version: string): Bun.BunPlugin {
  return {
    name: "version",
    setup(builder) {
      builder.onLoad({ filter: /\/package\.json$/ }, () => ({ contents: JSON.stringify({ version }), loader: "json" }));
    },
  };
}
