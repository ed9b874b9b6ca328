import { reasonOf } from "../config/config-files.ts";
import { type Command, type Context, EXIT_FAILED, EXIT_OK, type ExitCode, UsageError, wantsJson } from "./command.ts";
import { checkNetworkFile, type FileReport } from "./network-file.ts";
import { paint } from "./paint.ts";

interface CheckedFile extends FileReport {
  readonly file: string;
}

export const configCheck: Command = {
  kind: "command",
  name: "check",
  summary: "Tell what is wrong with network configs, each problem with its place in the file",
  description: [
    "FILE is a network config or a list of them (a conflist); - is standard input.",
    "Warnings alone leave the exit code at 0; any error makes it 1.",
  ].join("\n"),
  operands: "FILE…",
  completes: "files",
  options: [
    { name: "effective", summary: "Also print the config with all defaults filled in" },
    { name: "skip-files", summary: "Do not look for the key, certificate and kubeconfig files the config names" },
  ],
  examples: [
    { command: "config check /etc/cni/net.d/10-pods.conflist", does: "Is this config right?" },
    { command: "config check --effective - < pods.conf", does: "What does it amount to?" },
    { command: "config check -o json --skip-files *.conflist", does: "For a script, away from the node" },
  ],
  async run(context, given) {
    if (given.operands.length === 0) throw new UsageError('"config check" needs at least one FILE, or - for stdin');
    const options = { looksForFiles: !given.switches.has("skip-files") };
    const files: CheckedFile[] = [];
    for (const file of given.operands) files.push(await check(file, context, options));

    const showsEffective = given.switches.has("effective");
    if (wantsJson(given)) context.stdout(asJson(files, showsEffective));
    else for (const file of files) printFile(file, context, showsEffective);
    return exitCodeOf(files);
  },
};

async function check(
  file: string,
  context: Context,
  options: { readonly looksForFiles: boolean },
): Promise<CheckedFile> {
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
    const label = severity === "error" ? red("error:") : yellow("warning:");
    context.stdout(`${bold(`${file}:${line}:${column}:`)} ${label} ${message}\n`);
  }
  if (findings.every(({ severity }) => severity === "warning")) context.stdout(`${bold(`${file}:`)} ${green("ok")}\n`);
  if (showsEffective && effective !== undefined) context.stdout(`${JSON.stringify(effective, undefined, 2)}\n`);
}

function asJson(files: readonly CheckedFile[], showsEffective: boolean): string {
  const answer = files.map(({ file, findings, effective }) => ({
    file,
    ok: findings.every(({ severity }) => severity === "warning"),
    findings,
    ...(showsEffective ? { effective } : {}),
  }));
  return `${JSON.stringify({ files: answer }, undefined, 2)}\n`;
}
