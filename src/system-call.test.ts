import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { addressOf, CURRENT_FOLDER, lastErrno, pathBytes, SYSTEM_CALLS, systemCall } from "./system-call.ts";

/** Where distributions install the numbers of each architecture. */
const HEADERS = {
  x64: ["/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"],
  arm64: ["/usr/include/asm-generic/unistd.h"],
} as const;

/** `#define __NR_read 63`; a call that differs between 32 and 64 bits is named like `__NR3264_fcntl`. */
function numbersIn(header: string): ReadonlyMap<string, number> {
  const lines = readFileSync(header, "utf8").matchAll(/^#define __NR(?:3264)?_(\w+)\s+(\d+)/gm);
  return new Map([...lines].map(([, name = "", number]) => [name, Number(number)]));
}

describe("the numbers of system calls", () => {
  for (const machine of ["x64", "arm64"] as const) {
    const header = HEADERS[machine].find((path) => existsSync(path));
    const why = header === undefined ? ` (skipped: needs one of ${HEADERS[machine].join(", ")})` : "";

    test.skipIf(header === undefined)(`on ${machine} are those of the kernel's header${why}`, () => {
      const numbers = numbersIn(header ?? "");
      const ours = new Map<string, number>();
      for (const [name, number] of Object.entries(SYSTEM_CALLS)) ours.set(name, number[machine === "x64" ? 0 : 1]);

      expect(ours).toEqual(new Map([...ours.keys()].map((name) => [name, numbers.get(name) ?? -1])));
    });
  }
});

describe("systemCall()", () => {
  test("returns what the kernel returns", () => {
    const file = systemCall("openat", CURRENT_FOLDER, pathBytes("/proc/self/comm"));
    const buffer = new Uint8Array(64);
    const length = systemCall("read", file, buffer, buffer.length);

    expect(file).toBeGreaterThan(2);
    expect(new TextDecoder().decode(buffer.subarray(0, length))).toBe(readFileSync("/proc/self/comm", "utf8"));
    expect(systemCall("close", file)).toBe(0);
  });

  test("accepts the address of a buffer as any argument", () => {
    const socket = systemCall("socket", 1, 1, 0);
    const kind = new Int32Array(1);
    const length = Int32Array.of(kind.byteLength);

    expect(systemCall("getsockopt", socket, 1, 3, addressOf(kind), addressOf(length))).toBe(0);
    expect([...kind, ...length]).toEqual([1, kind.byteLength]);
    systemCall("close", socket);
  });

  test.each([
    ["a file that does not exist", () => systemCall("openat", CURRENT_FOLDER, pathBytes("/nowhere/at/all")), 2],
    ["a descriptor that is closed", () => systemCall("close", 987_654), 9],
    ["reading a folder", () => readOf("/"), 21],
    ["a file instead of a folder", () => systemCall("openat", CURRENT_FOLDER, pathBytes("/proc/self/comm/x")), 20],
    ["an unknown protocol", () => systemCall("socket", 1, 1, 999), 93],
  ])("fails with the error number of %s", (_, fails, errno) => {
    const result = fails();

    expect([result, lastErrno()]).toEqual([-1, errno]);
  });

  test("encodes a path outside ASCII as UTF-8", () => {
    expect(pathBytes("/ü")).toEqual(Uint8Array.of(47, 0xc3, 0xbc, 0));
  });
});

function readOf(path: string): number {
  const file = systemCall("openat", CURRENT_FOLDER, pathBytes(path));
  return systemCall("read", file, new Uint8Array(8), 8);
}
