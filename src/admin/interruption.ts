/** The end of a command by a signal. */
import { PluginError } from "../errors.ts";

export const STOP_SIGNALS = ["SIGINT", "SIGTERM"] as const;

type StopSignal = (typeof STOP_SIGNALS)[number];

/** What a shell reports of a process that the signal ended: 128 and the signal's number. */
export const STOP_EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const satisfies Record<StopSignal, number>;

/** The reason that a command's abort signal bears. */
export class Interruption extends PluginError {
  readonly exitCode: (typeof STOP_EXIT_CODES)[StopSignal];

  constructor(signal: StopSignal) {
    super("interrupted", `Cannot finish: stopped by ${signal}`);
    this.exitCode = STOP_EXIT_CODES[signal];
  }
}

/** Whether the failure only passes on that the command was stopped. */
export function isOfInterruption(failure: unknown, { reason }: AbortSignal): boolean {
  return failure === reason || (failure instanceof Error && isCausedBy(failure, reason));
}

function isCausedBy(failure: Error, reason: unknown): boolean {
  return failure.cause === reason || (failure.cause instanceof Error && isCausedBy(failure.cause, reason));
}
