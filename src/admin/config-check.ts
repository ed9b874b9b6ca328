import { reasonOf } from "../config/config-files.ts";
import { describeFailure } from "../errors.ts";
import { type Command, type Context, EXIT_FAILED, EXIT_OK, type ExitCode, UsageError, wantsJson } from "./command.ts";
import { datastoreOf } from "./datastore/choice.ts";
import { requireFile } from "./datastore/open.ts";
import { findPools } from "./ipam/pools.ts";
import { type CheckOptions, type ConfigHost, checkNetworkFile, type FileReport } from "./network-file.ts";
import { paint } from "./paint.ts";

interface CheckedFile extends FileReport {
  readonly file: string;
}

export const configCheck: Command = {
  kind: "command",
  name: "check",
  summary: "Check network configuration files and report each problem with its line and column",
  description: [
    "FILE is a network configuration or a network configuration list (conflist); - reads standard input.",
    "The plugins of a list are checked together: their order, their capabilities, and the options of portmap, bandwidth",
    "and host-local. Then the config is compared with this host: the CNI versions that podman, containerd and CRI-O accept, the",
    "plugins in their plugin directories and in CNI_PATH, the files and the pools that it names. --skip-files leaves this out.",
    "The exit code is 1 if there is any error, and 0 if there are only warnings and notes.",
  ].join("\n"),
  operands: "FILE…",
  completes: "files",
  options: [
    { name: "effective", summary: "Also print the configuration with all defaults filled in" },
    { name: "skip-files", summary: "Do not look at this host: its files, plugins, container runtimes and datastore" },
  ],
  examples: [
    { command: "config check /etc/cni/net.d/10-pods.conflist", does: "Check a file" },
    { command: "config check --effective - < pods.conf", does: "Show the effective configuration" },
    {
      command: "config check -o json --skip-files *.conflist",
      does: "Check files in a script, on another machine than the node",
    },
  ],
  async run(context, given) {
    if (given.operands.length === 0)
      throw new UsageError('"config check" requires at least one FILE, or - for standard input');
    const options = given.switches.has("skip-files") ? {} : { host: await hostOf(context) };
    const files: CheckedFile[] = [];
    for (const file of given.operands) files.push(await check(file, context, options));

    const showsEffective = given.switches.has("effective");
    if (wantsJson(given)) context.stdout(asJson(files, showsEffective));
    else for (const file of files) printFile(file, context, showsEffective);
    return exitCodeOf(files);
  },
};

async function hostOf(context: Context): Promise<ConfigHost> {
  return {
    ...(await context.readCniHost()),
    // What does not exist, or cannot be looked at, is not known to be one.
    isDirectory: (path) =>
      context.listFolder(path).then(
        (names) => names !== undefined,
        () => false,
      ),
    readPools: (decoded) => readPools(context, decoded),
  };
}

/** Longer than a datastore that answers takes; one that does not is only a note. */
const LONGEST_READ_MILLISECONDS = 1_500;

async function readPools(
  context: Context,
  decoded: Parameters<ConfigHost["readPools"]>[0],
): ReturnType<ConfigHost["readPools"]> {
  try {
    const { settings } = datastoreOf(decoded);
    await requireFile(settings, context);
    const store = await context.openDatastore(settings);
    const done = new AbortController();
    try {
      const limit = context.clock.wait(LONGEST_READ_MILLISECONDS, done.signal);
      return await Promise.race([findPools(store), limit.then(() => ({ reason: "it does not answer" }))]);
    } finally {
      done.abort();
      await store.close();
    }
  } catch (failure) {
    context.signal.throwIfAborted();
    return { reason: describeFailure(failure) };
  }
}

async function check(file: string, context: Context, options: CheckOptions): Promise<CheckedFile> {
  try {
    const text = file === "-" ? await context.readStdin() : await context.readFile(file);
    return { file: file === "-" ? "stdin" : file, ...(await checkNetworkFile(text, options)) };
  } catch (cause) {
    context.signal.throwIfAborted();
    const message = `Cannot read the file: ${reasonOf(cause)}`;
    return { file, findings: [{ severity: "error", path: "", line: 1, column: 1, message }], effective: undefined };
  }
}

function exitCodeOf(files: readonly CheckedFile[]): ExitCode {
  const failed = files.some(({ findings }) => findings.some(({ severity }) => severity === "error"));
  return failed ? EXIT_FAILED : EXIT_OK;
}

function printFile({ file, findings, effective }: CheckedFile, context: Context, showsEffective: boolean): void {
  const { bold, red, yellow, green } = paint(context);
  for (const { severity, line, column, message } of findings) {
    const label = { error: red("error:"), warning: yellow("warning:"), note: "note:" }[severity];
    context.stdout(`${bold(`${file}:${line}:${column}:`)} ${label} ${message}\n`);
  }
  if (findings.every(({ severity }) => severity !== "error")) context.stdout(`${bold(`${file}:`)} ${green("ok")}\n`);
  if (showsEffective && effective !== undefined) context.stdout(`${JSON.stringify(effective, undefined, 2)}\n`);
}

function asJson(files: readonly CheckedFile[], showsEffective: boolean): string {
  const reports = files.map(({ file, findings, effective }) => ({
    file,
    ok: findings.every(({ severity }) => severity !== "error"),
    findings,
    ...(showsEffective ? { effective } : {}),
  }));
  return `${JSON.stringify({ files: reports }, undefined, 2)}\n`;
}
