/**
 * One call of `vendor` or `vendor-ipam` and what it uses: config, log, node name,
 * and a datastore that is opened when it is first needed, so that it may connect
 * while the kernel works. Everything is closed at the end of the call.
 */
import type { CniCall } from "../cni/call.ts";
import type { EnterPhase } from "../cni/phase.ts";
import type { CallContext } from "../cni/serve.ts";
import { namingFields, nodeNameFor } from "../config/config-files.ts";
import { type DatastoreSettings, datastoreSettings } from "../config/datastore-settings.ts";
import { configInvalid, decodeNetworkConfig } from "../config/decode.ts";
import type { NetworkConfig } from "../config/network-config.ts";
import type { Datastore } from "../datastore/datastore.ts";
import { type CallClock, logDone, logFailed } from "../log/call-lines.ts";
import { openConfigLog } from "../log/config-log.ts";
import type { LogFields } from "../log/line.ts";
import { type Log, type LogSurroundings, openLog } from "../log/log.ts";
import type { Allocator } from "./allocator.ts";
import { type HostMeans, openHostAllocator } from "./host-allocator.ts";
import type { ThisMachine } from "./node-machine.ts";

/** What a plugin needs from its process. */
export interface Surroundings extends HostMeans {
  readonly pid: number;
  readonly hostName: () => Promise<string>;
  readonly uuid: () => string;
  /** Identity of this machine; `undefined` if it has none. */
  readonly machineIdentity: () => string | undefined;
  /** For programs that provide credentials. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly stderr: (text: string) => void;
  readonly enterPhase: EnterPhase;
  /** Since the call began. */
  readonly milliseconds: CallClock;
}

export interface Session<Around extends Surroundings = Surroundings> {
  readonly config: NetworkConfig;
  readonly settings: DatastoreSettings;
  readonly node: string;
  readonly log: Log;
  /** Fields for the line that is logged when the call has succeeded. */
  readonly note: (fields: LogFields) => void;
  readonly signal: AbortSignal;
  readonly surroundings: Around;
  /** Opened once, when first needed; closed with the session. */
  readonly store: () => Promise<Datastore>;
  /** On that datastore. */
  readonly allocator: () => Promise<Allocator>;
}

export function thisMachine({ node, surroundings }: Pick<Session, "node" | "surroundings">): ThisMachine {
  return { node, machineIdentity: surroundings.machineIdentity };
}

/** How the sessions of one plugin differ from another's. */
export interface SessionKind {
  /** The name of the plugin in the log. */
  readonly component: string;
  /** When the process is asked to stop: a plugin that must undo its changes still needs its datastore. */
  readonly whenStopped: "close datastore" | "keep datastore";
}

/** Turns functions that need a session into commands of a plugin. */
export function openingSessions<Around extends Surroundings>(surroundings: Around, kind: SessionKind) {
  return <Call extends CniCall, Result>(command: (call: Call, session: Session<Around>) => Promise<Result>) =>
    (call: Call, context: CallContext): Promise<Result> =>
      withSession(surroundings, { call, context, ...kind }, (session) => command(call, session));
}

async function withSession<Around extends Surroundings, Result>(
  surroundings: Around,
  { call, context, component, whenStopped }: SessionKind & { readonly call: CniCall; readonly context: CallContext },
  work: (session: Session<Around>) => Promise<Result>,
): Promise<Result> {
  const { pid, stderr, host, random, now: clock, milliseconds, environment } = surroundings;
  const { signal } = context;
  const logSurroundings = { component, pid, clock, stderr };
  const decoded = decodeNetworkConfig(call.config);
  if (!decoded.ok) {
    const failure = configInvalid(decoded.problems);
    await logInvalidConfig(call, failure, { ...logSurroundings, milliseconds });
    throw failure;
  }
  const { config } = decoded;
  const log = openConfigLog(decoded, logSurroundings);
  let noted: LogFields = {};
  const note = (fields: LogFields) => {
    noted = { ...noted, ...fields };
  };
  const settings = datastoreSettings(config);
  const warn = (message: string) => log.warning(message);
  const { store, close } = openOnce(() =>
    host.openDatastore(settings, {
      random,
      warn,
      ...(environment && { environment }),
      ...(host.openKubeClient && { openClient: host.openKubeClient }),
      ...(whenStopped === "close datastore" && { signal }),
    }),
  );
  try {
    const node = await nodeNameFor(call, config, surroundings.hostName);
    const allocator = async () => {
      surroundings.enterPhase("datastore");
      return openHostAllocator(await store(), surroundings, { node, settings, warn });
    };
    const result = await work({ config, settings, node, log, note, signal, surroundings, store, allocator });
    logDone(log, call, { node, ...noted }, milliseconds);
    return result;
  } catch (cause) {
    const failure = await namingFields(cause, decoded.files);
    logFailed(log, call, failure, milliseconds);
    throw failure;
  } finally {
    surroundings.enterPhase("datastore");
    await close();
    surroundings.enterPhase("exit");
    log.close();
  }
}

function openOnce(open: () => Promise<Datastore>) {
  let opening: Promise<Datastore> | undefined;
  const store = () => {
    opening ??= open();
    // A failure is reported when the datastore is used, which may never happen.
    opening.catch(() => {});
    return opening;
  };
  const close = async () => {
    await opening?.then(
      (opened) => opened.close(),
      () => {},
    );
  };
  return { store, close };
}

/** In the log that the config names, if those options can be read. */
async function logInvalidConfig(
  call: CniCall,
  failure: unknown,
  { milliseconds, ...surroundings }: LogSurroundings & { readonly milliseconds: CallClock },
): Promise<void> {
  const { readLogSettings } = await import("../log/log-settings.ts");
  const log = openLog(readLogSettings(call.config).settings, surroundings);
  logFailed(log, call, failure, milliseconds);
  log.close();
}
