import { describe, expect, test } from "bun:test";
import { errnoOf } from "./errno.ts";
import { isKernelError, KernelError } from "./kernel-error.ts";

describe("KernelError", () => {
  test("contains the action, the name of the error and the kernel's text", () => {
    const error = new KernelError('create link "eth0"', 17, "Name already taken");
    expect(error.message).toBe('Cannot create link "eth0": EEXIST (File exists): Name already taken');
    expect(error.kind).toBe("kernel-refused");
    expect(error.cniCode).toBe(107);
  });

  test("shows an unknown error as a number", () => {
    expect(new KernelError("x", 4711).message).toBe("Cannot x: error number 4711");
  });
});

describe("isKernelError()", () => {
  test("is true only for one of the names, and for no other error", () => {
    const error = new KernelError("x", errnoOf("ENODEV"));
    expect(isKernelError(error, "EEXIST", "ENODEV")).toBe(true);
    expect(isKernelError(error, "EEXIST")).toBe(false);
    expect(isKernelError(new Error("ENODEV"), "ENODEV")).toBe(false);
    expect(isKernelError(undefined, "ENODEV")).toBe(false);
  });
});
