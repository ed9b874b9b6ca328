/**
 * The log of one call of a plugin without a session: portmap, bandwidth and
 * host-local. It goes to the file that the plugin's own config names, else to the
 * one that the config of its network names. Nothing is looked up before the first line.
 */
import type { CniCall } from "../cni/call.ts";
import type { JsonObject } from "../cni/json.ts";
import type { CallContext } from "../cni/serve.ts";
import { type CallClock, logDone, logFailed } from "./call-lines.ts";
import type { LogFields } from "./line.ts";
import { type Log, type LogSurroundings, openLog } from "./log.ts";
import { readLogSettings } from "./log-settings.ts";

export interface CallLogSurroundings extends LogSurroundings {
  readonly milliseconds: CallClock;
  /** The config of the first plugin of this network that names a log file, if it is found. */
  readonly networkLogConfig: (network: string) => JsonObject | undefined;
}

export interface CallLog {
  warning(message: string): void;
  /** The call changed something: its line at INFO has these fields. Without it the line is left out. */
  changed(fields: LogFields): void;
}

export interface LoggedContext extends CallContext {
  readonly log: CallLog;
}

/** Turns functions that need a log into commands of a plugin. */
export function loggingCalls(surroundings: CallLogSurroundings) {
  return <Call extends CniCall, Result>(command: (call: Call, context: LoggedContext) => Promise<Result>) =>
    (call: Call, context: CallContext): Promise<Result> =>
      withCallLog(call, surroundings, (log) => command(call, { ...context, log }));
}

async function withCallLog<Result>(
  call: CniCall,
  surroundings: CallLogSurroundings,
  work: (log: CallLog) => Promise<Result>,
): Promise<Result> {
  const { milliseconds } = surroundings;
  let opened: Log | undefined;
  const log = (): Log => {
    opened ??= openLogOf(call, surroundings);
    return opened;
  };
  let changes: LogFields | undefined;
  try {
    const result = await work({
      warning: (message) => log().warning(message),
      changed: (fields) => {
        changes = fields;
      },
    });
    if (changes !== undefined) logDone(log(), call, changes, milliseconds);
    return result;
  } catch (failure) {
    logFailed(log(), call, failure, milliseconds);
    throw failure;
  } finally {
    opened?.close();
  }
}

function openLogOf({ config, networkName }: CniCall, surroundings: CallLogSurroundings): Log {
  const own = readLogSettings(config);
  const ofNetwork = own.settings.filePath === undefined ? surroundings.networkLogConfig(networkName) : undefined;
  // The plugin's own options count, if it has any besides the file.
  const { settings, problems } = ofNetwork === undefined ? own : readLogSettings({ ...ofNetwork, ...config });
  const log = openLog(settings, surroundings);
  for (const { message } of problems) log.warning(message);
  return log;
}
