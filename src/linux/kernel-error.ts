/**
 * A refusal by the kernel. Callers that expect EEXIST or ENODEV check for it with
 * `isKernelError(error, "EEXIST")`.
 */
import { PluginError } from "../errors.ts";
import { describeErrno, type ErrnoName, errnoOf } from "./errno.ts";

export class KernelError extends PluginError {
  readonly errno: number;
  /** The kernel's extended acknowledgement; empty if there was none. */
  readonly kernelText: string;

  /** `action` is what was attempted: the text that follows "Cannot". */
  constructor(action: string, errno: number, kernelText = "") {
    const words = kernelText === "" ? "" : `: ${kernelText}`;
    super("kernel-refused", `Cannot ${action}: ${describeErrno(errno)}${words}`);
    this.errno = errno;
    this.kernelText = kernelText;
  }
}

export function isKernelError(error: unknown, ...names: readonly ErrnoName[]): error is KernelError {
  return error instanceof KernelError && names.some((name) => error.errno === errnoOf(name));
}
