import { basename, dirname } from "node:path";
import { isJsonObject } from "../../cni/json.ts";
import { reasonOf } from "../../config/config-files.ts";
import { isNetworkFileName, networkConfigDirectory } from "../../config/installed-network.ts";
import { counted } from "../../counted.ts";
import { describeFailure, PluginError } from "../../errors.ts";
import { parseJson } from "../../parse-json.ts";
import { datastoreOf } from "../datastore/choice.ts";
import { isFileAbsent, requireFile } from "../datastore/open.ts";
import { findPools } from "../ipam/pools.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, wantsJson } from "../main/command.ts";
import type { Call, Clock, DatastoreAccess, Files, Host, Terminal } from "../main/context.ts";
import { paint } from "../terminal/paint.ts";
import { type CheckOptions, type ConfigHost, checkNetworkFile, type FileReport } from "./check-network-file.ts";

interface CheckedFile extends FileReport {
  readonly file: string;
}

export async function run(context: DatastoreAccess & Host & Clock, given: Given): Promise<ExitCode> {
  const options = given.switches.has("skip-files") ? {} : { host: await hostOf(context) };
  const files: CheckedFile[] = [];
  for (const operand of given.operands.length === 0 ? [await ownDirectory(context)] : given.operands)
    files.push(...(await checkOperand(operand, context, options)));

  const showsEffective = given.switches.has("effective");
  if (wantsJson(given)) context.stdout(asJson(files, showsEffective));
  else for (const file of files) printFile(file, context, showsEffective);
  return exitCodeOf(files);
}

async function hostOf(context: DatastoreAccess & Host & Clock): Promise<ConfigHost> {
  return {
    ...(await context.readCniHost()),
    // What does not exist, or cannot be looked at, is not known to be one.
    isDirectory: (path) =>
      context.listFolder(path).then(
        (names) => names !== undefined,
        () => false,
      ),
    isAbsent: isFileAbsent,
    readPools: (decoded) => readPools(context, decoded),
  };
}

/** Longer than a datastore that answers takes; one that does not is only a note. */
const LONGEST_READ_MILLISECONDS = 1_500;

async function readPools(
  context: DatastoreAccess & Clock,
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

/** Of this host. */
async function ownDirectory(context: Call & Files): Promise<string> {
  const directory = networkConfigDirectory(context);
  const names = await context.listFolder(directory).catch((failure: unknown) => {
    if (failure instanceof Error && "code" in failure && failure.code === "ENOENT") return undefined;
    throw new PluginError("io-failure", `Cannot check ${directory}: ${reasonOf(failure)}`, { cause: failure });
  });
  if (names === undefined) throw nothingIn(directory);
  return directory;
}

/** A file, or those of a directory that runtimes read. */
async function checkOperand(
  operand: string,
  context: Call & Terminal & Files,
  options: CheckOptions,
): Promise<readonly CheckedFile[]> {
  const directory = operand.replace(/(?<=.)\/+$/, "");
  const names = operand === "-" ? undefined : await context.listFolder(directory).catch(() => undefined);
  if (names === undefined) {
    if (await isLock(operand, context)) return [];
    return [await check(operand, context, { ...options, ...(await besides(operand, context, options)) })];
  }
  const files = names.filter(isNetworkFileName).map((name) => `${directory}/${name}`);
  if (files.length === 0) throw nothingIn(directory);
  const checked: CheckedFile[] = [];
  for (const file of files) {
    const neighbours = await besides(file, context, options);
    checked.push(await check(file, context, { ...options, ...neighbours, mayBeOfOthers: true }));
  }
  return checked;
}

function nothingIn(directory: string): PluginError {
  const state = "it contains no network config (a file whose name ends with .conflist, .conf or .json)";
  return new PluginError("config-invalid", `Cannot check ${directory}: ${state}`);
}

/** Podman keeps an empty one among its network configs, and "*" names it too. */
async function isLock(file: string, { readFile }: Files): Promise<boolean> {
  return file.endsWith(".lock") && (await readFile(file).catch(() => "unknown")) === "";
}

/** In the directory of this host: the networks of the files that come before this one. */
async function besides(
  file: string,
  context: Call & Files,
  { host }: CheckOptions,
): Promise<Pick<CheckOptions, "earlierNetworks">> {
  const directory = networkConfigDirectory(context);
  if (host === undefined || dirname(file) !== directory) return {};
  const names = (await context.listFolder(directory).catch(() => undefined)) ?? [];
  const earlierNetworks = new Map<string, string>();
  for (const name of names.filter(isNetworkFileName)) {
    if (name >= basename(file)) continue;
    const network = await context.readFile(`${directory}/${name}`).then(networkNameIn, () => undefined);
    if (network !== undefined && !earlierNetworks.has(network)) earlierNetworks.set(network, `${directory}/${name}`);
  }
  return { earlierNetworks };
}

/** `undefined`: it has none, or runtimes cannot parse it. */
function networkNameIn(text: string): string | undefined {
  try {
    const network = parseJson(text);
    return isJsonObject(network) && typeof network["name"] === "string" ? network["name"] : undefined;
  } catch {
    return undefined;
  }
}

async function check(file: string, context: Call & Terminal & Files, options: CheckOptions): Promise<CheckedFile> {
  try {
    const text = file === "-" ? await context.readStdin() : await context.readFile(file);
    return { file: file === "-" ? "stdin" : file, ...(await checkNetworkFile(text, options)) };
  } catch (cause) {
    context.signal.throwIfAborted();
    return unusable(file, `Cannot read the file: ${reasonOf(cause)}`);
  }
}

function unusable(file: string, message: string): CheckedFile {
  return { file, findings: [{ severity: "error", path: "", line: 1, column: 1, message }], effective: undefined };
}

function exitCodeOf(files: readonly CheckedFile[]): ExitCode {
  const failed = files.some(({ findings }) => findings.some(({ severity }) => severity === "error"));
  return failed ? EXIT_FAILED : EXIT_OK;
}

function printFile(
  { file, findings, effective }: CheckedFile,
  context: Call & Terminal,
  showsEffective: boolean,
): void {
  const { bold, red, yellow, green } = paint(context);
  for (const { severity, line, column, message } of findings) {
    const label = { error: red("error:"), warning: yellow("warning:"), note: "note:" }[severity];
    context.stdout(`${bold(`${file}:${line}:${column}:`)} ${label} ${message}\n`);
  }
  const warnings = findings.filter(({ severity }) => severity === "warning").length;
  const verdict = wouldFail(findings)
    ? yellow("would fail on this host")
    : `${green("ok")}${warnings === 0 ? "" : `, with ${counted(warnings, "warning")}`}`;
  if (findings.every(({ severity }) => severity !== "error")) context.stdout(`${bold(`${file}:`)} ${verdict}\n`);
  if (showsEffective && effective !== undefined) context.stdout(`${JSON.stringify(effective, undefined, 2)}\n`);
}

function wouldFail(findings: CheckedFile["findings"]): boolean {
  return findings.some(({ failsHere }) => failsHere);
}

function asJson(files: readonly CheckedFile[], showsEffective: boolean): string {
  const reports = files.map(({ file, findings, effective }) => ({
    file,
    ok: findings.every(({ severity }) => severity !== "error"),
    ...(wouldFail(findings) ? { wouldFail: true } : {}),
    findings,
    ...(showsEffective ? { effective } : {}),
  }));
  return `${JSON.stringify({ files: reports }, undefined, 2)}\n`;
}
