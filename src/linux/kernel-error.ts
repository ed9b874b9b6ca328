/**
 * What the kernel said no to, as an error that can also be tested as a value:
 * callers that expect EEXIST or ENODEV ask `isKernelError(error, "EEXIST")`.
 */
import { PluginError } from "../errors.ts";
import { describeErrno, type ErrnoName, errnoOf } from "./errno.ts";

export class KernelError extends PluginError {
  readonly errno: number;
  /** The kernel's extended acknowledgement, empty where it gave none. */
  readonly kernelText: string;

  /** `action` is what was attempted, as it reads after "Cannot". */
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
