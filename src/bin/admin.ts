/** Runs the admin tool with its real dependencies. */

import { readdir, readFile } from "node:fs/promises";
import { editText } from "../admin/host/edit-text.ts";
import { findProgram, runProgram, writeNewFile } from "../admin/host/run-program.ts";
import { EXIT_FAILED, EXIT_OK } from "../admin/main/command.ts";
import type { Call, Clock, Context, Files, Host, HostNetwork, PolicyTable } from "../admin/main/context.ts";
import { Interruption, STOP_EXIT_CODES, STOP_SIGNALS } from "../admin/main/interruption.ts";
import { runAdmin } from "../admin/main/run.ts";
import type { KubeAccess } from "../config/kube-access.ts";
import { runDirectoryOf } from "../config/run-directory.ts";
import { SYSTEM_CLOCK } from "../datastore/replica/clock.ts";
import { identity } from "../identity.ts";
import type { FileFolder } from "../linux/file-folder.ts";
import { hostName } from "../linux/host-name.ts";
import type { SocketOpener } from "../linux/netlink-socket.ts";
import { VERSION } from "../version.ts";
import { wasClosedAtStart } from "./descriptors.ts";
import { removeUntrustedVariables } from "./trusted-environment.ts";

export async function run(args: readonly string[]): Promise<number> {
  // The executable starts with little JIT compilation, which suits the plugins; checking a whole cluster benefits from more.
  Bun.unsafe.setJITPolicy(1);
  const stderr = openOutput(process.stderr, () => {});
  const reportUnwritten = (reason: string) => stderr(`Cannot write the result to stdout: ${reason}\n`);
  if (wasClosedAtStart(1)) {
    reportUnwritten("it is closed");
    return EXIT_FAILED;
  }
  let isOutputLost = false;
  const outputClosed = new AbortController();
  const stdout = openOutput(process.stdout, (failure) => {
    if (isEndOfReading(failure)) return outputClosed.abort();
    isOutputLost = true;
    reportUnwritten(failure.message);
    // The failure may occur after the work is done and its exit code is set.
    process.exitCode ||= EXIT_FAILED;
  });
  const stopping = stopOnSignals();
  const environment = removeUntrustedVariables();
  const warn = (message: string) => stderr(`Warning: ${message}\n`);
  const reportSilence = (url: string, left: number) =>
    stderr(`etcd at ${url} does not answer; waiting up to ${Math.ceil(left / 1_000)} s more\n`);
  const openClient = async (access: KubeAccess) => {
    const options = { environment, warn, now: () => new Date(), elapsed: () => performance.now() };
    return (await import("../kube/client.ts")).openKubeClient(access, { ...options, program: identity.adminTool });
  };
  const context: Context = {
    env: environment,
    signal: stopping.signal,
    version: VERSION,
    isTerminal: process.stdout.isTTY === true,
    terminalWidth: process.stdout.columns,
    showsProgress: process.stderr.isTTY === true,
    outputClosed: outputClosed.signal,
    stdout,
    stderr,
    readStdin: () => Bun.stdin.text(),
    editText: (text, editor) => stopping.holdWhile(() => editText(text, editor)),
    ...filesOf(environment),
    ...hostOf(environment, stopping.signal),
    ...hostNetworkOf(environment, warn),
    ...POLICY_TABLE,
    openDatastore: async (settings) =>
      (await import("../datastore/open.ts")).openDatastore(settings, { environment, warn, onSilence: reportSilence }),
    openKubeClient: openClient,
    openKubeLines: openClient,
    ...CLOCK,
  };
  const code = await runAdmin(args, context);
  stopping.forget();
  if (stopping.signal.aborted) return endStopped(code);
  return isOutputLost && code === EXIT_OK ? EXIT_FAILED : code;
}

type Environment = Call["env"];

function filesOf(environment: Environment): Files {
  return {
    readFile: (path) => readFile(path, "utf8"),
    readOwnFile: async (path) => {
      const { readOwnFile, trustedUsers } = await import("../linux/read-own-file.ts");
      return readOwnFile(path, trustedUsers(process.getuid?.() ?? 0, environment["SUDO_UID"]));
    },
    listFolder,
    replaceFile: async (path, text) => (await import("../linux/replace-file.ts")).replaceFile(path, text),
    replacePrivateFile: async (path, text) => {
      (await import("../linux/replace-file.ts")).replaceFile(path, text, "owner");
    },
    removeFile: async (path) => (await import("../linux/files.ts")).removeFile(path),
    writeArchive: writeNewFile,
  };
}

function hostOf(environment: Environment, signal: AbortSignal): Host {
  return {
    hostName,
    machineIdentity: async () =>
      (await import("../linux/machine-identity.ts")).ensureMachineIdentity(identity, () => crypto.randomUUID()),
    startedBy: () => process.ppid,
    findProgram: (name) => findProgram(name, environment),
    runProgram: (command) => runProgram(command, signal),
    readCniHost: async () => (await import("../admin/host/read-cni-host.ts")).readCniHost(environment),
    readHostFacts: async () => (await import("../admin/host/read-host-facts.ts")).readHostFacts(environment),
    readKernelFeatures: async () => (await import("../admin/host/read-kernel-features.ts")).readKernelFeatures(),
    readAgentFacts: async () => (await import("../admin/host/read-host-facts.ts")).readAgentFacts(environment),
  };
}

function hostNetworkOf(environment: Environment, warn: (message: string) => void): HostNetwork {
  return {
    uplinkMtu: async () => (await import("../linux/rtnetlink/uplink-mtu.ts")).uplinkMtu(await ownSockets()),
    hostAddresses: async () => (await import("../linux/rtnetlink/host-addresses.ts")).hostAddresses(await ownSockets()),
    linkNames: async () => (await import("../linux/rtnetlink/host-addresses.ts")).linkNames(await ownSockets()),
    publishedPorts: async () => {
      const [{ runningOwners }, folder] = await Promise.all([
        import("../chained/portmap/running-owners.ts"),
        hostPortRecords(environment),
      ]);
      return runningOwners(folder);
    },
    sourceTowards: async (destination, family) =>
      (await import("../linux/rtnetlink/host-addresses.ts")).sourceTowards(await ownSockets(), destination, family),
    hostLinks: async () => (await import("../ipam/leaks/host-links.ts")).readHostLinks(runDirectoryOf(process.env)),
    containerAddresses: async () => (await import("../linux/container-addresses.ts")).containerAddresses(),
    readRoutingFacts: async () =>
      (await import("../admin/host/read-routing-facts.ts")).readRoutingFacts(environment, process.getuid?.() === 0),
    restoreTables: async (wanted, warn) => {
      const [{ restoreTables }, hostPorts] = await Promise.all([
        import("../upkeep/restore-tables.ts"),
        hostPortRecords(environment),
      ]);
      return restoreTables({ kernel: await ownSockets(), hostPorts }, wanted, warn);
    },
    forgetConnections: async (addresses) => {
      const [{ trackedConnections }, { directNetfilter }] = await Promise.all([
        import("../firewall/tracked-connections.ts"),
        import("../linux/netfilter-access.ts"),
      ]);
      await (await trackedConnections(directNetfilter, warn))?.forget(addresses);
    },
  };
}

const POLICY_TABLE: PolicyTable = {
  readPolicyCounts: async () => (await import("../admin/host/policy-kernel.ts")).readPolicyCounts(),
  openDropLog: async () => (await import("../admin/host/policy-kernel.ts")).openDropLog(),
  openTracer: async (alternatives) =>
    (await import("../admin/host/policy-kernel.ts")).openTracer(alternatives, process.pid),
};

const CLOCK: Clock = {
  now: () => new Date(),
  uuid: () => crypto.randomUUID(),
  random: Math.random,
  wait: (milliseconds) => Bun.sleep(milliseconds),
  clock: { now: () => performance.now(), wait: SYSTEM_CLOCK.wait },
};

interface Stopping {
  readonly signal: AbortSignal;
  /** Ctrl-C in an editor is the editor's, although the terminal sends it to this process too. */
  holdWhile<Result>(work: () => Promise<Result>): Promise<Result>;
  forget(): void;
}

/** The first signal lets the command end cleanly; a second one ends the process at once. */
function stopOnSignals(): Stopping {
  const controller = new AbortController();
  let isHeld = false;
  for (const name of STOP_SIGNALS) {
    process.on(name, () => {
      if (isHeld && name === "SIGINT") return;
      if (controller.signal.aborted) process.exit(STOP_EXIT_CODES[name]);
      controller.abort(new Interruption(name));
    });
  }
  return {
    signal: controller.signal,
    async holdWhile(work) {
      isHeld = true;
      try {
        return await work();
      } finally {
        isHeld = false;
      }
    },
    // A reader of stdout that does not read must not make the process immune to signals.
    forget() {
      for (const name of STOP_SIGNALS) process.removeAllListeners(name);
    },
  };
}

/** How long a stopped command waits for its output to be read. */
const FLUSH_MILLISECONDS = 500;

/** Exits once the output is flushed, even if something is still open, such as a read of standard input. */
async function endStopped(code: number): Promise<never> {
  const flushed = [process.stdout, process.stderr].map(
    (stream) => new Promise<void>((resolve) => stream.write("", () => resolve())),
  );
  await Promise.race([Promise.all(flushed), Bun.sleep(FLUSH_MILLISECONDS)]);
  process.exit(code);
}

async function hostPortRecords(environment: Call["env"]): Promise<FileFolder> {
  const [{ openFolder }, { hostPortsFolder }] = await Promise.all([
    import("../linux/file-folder.ts"),
    import("../chained/portmap/record-file.ts"),
  ]);
  return openFolder(hostPortsFolder(runDirectoryOf(environment)));
}

async function listFolder(path: string): Promise<readonly string[] | undefined> {
  try {
    return (await readdir(path)).sort();
  } catch (failure) {
    if (failure instanceof Error && "code" in failure && failure.code === "ENOTDIR") return undefined;
    throw failure;
  }
}

/** The first failure is reported; later output is dropped, and the command continues. */
function openOutput(stream: NodeJS.WriteStream, onFailure: (failure: Error) => void): (text: string) => void {
  let isBroken = false;
  stream.on("error", (failure: Error) => {
    if (isBroken) return;
    isBroken = true;
    onFailure(failure);
  });
  return (text) => {
    if (!isBroken) stream.write(text);
  };
}

/** A reader that stops reading (`| head`) is not a failure; any other write error is. */
function isEndOfReading(failure: Error): boolean {
  return "code" in failure && failure.code === "EPIPE";
}

/** Loaded only by the commands that read the kernel. */
async function ownSockets(): Promise<SocketOpener> {
  return (await import("../linux/netlink-socket.ts")).ownSockets;
}
