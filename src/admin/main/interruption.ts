/** The end of a command by a signal. */
import { PluginError } from "../../errors.ts";

export const STOP_SIGNALS = ["SIGINT", "SIGTERM"] as const;

type StopSignal = (typeof STOP_SIGNALS)[number];

/** As a shell reports a process ended by the signal: 128 plus the signal number. */
export const STOP_EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const satisfies Record<StopSignal, number>;

/** The reason of a command's abort signal. */
export class Interruption extends PluginError {
  readonly exitCode: (typeof STOP_EXIT_CODES)[StopSignal];

  constructor(signal: StopSignal) {
    super("interrupted", `Cannot finish: interrupted by ${signal}`);
    this.exitCode = STOP_EXIT_CODES[signal];
  }
}

/** Whether the failure was caused by the interruption alone. */
export function isInterruption(failure: unknown, { reason }: AbortSignal): boolean {
  return failure === reason || (failure instanceof Error && isCausedBy(failure, reason));
}

function isCausedBy(failure: Error, reason: unknown): boolean {
  return failure.cause === reason || (failure.cause instanceof Error && isCausedBy(failure.cause, reason));
}
