/**
 * A plugin that runs like the product's own, with handlers that do what the variable
 * SPY says, so that every way to end can be observed from outside.
 */
import { writeFileSync } from "node:fs";
import { runPlugin } from "../../src/bin/process.ts";
import type { AddCall } from "../../src/cni/call.ts";
import { delegateAdd } from "../../src/cni/delegate.ts";
import { type CniResult, EMPTY_RESULT } from "../../src/cni/result.ts";
import type { CallContext } from "../../src/cni/serve.ts";
import { CNI_VERSIONS } from "../../src/cni/version.ts";

const RESULT: CniResult = {
  ...EMPTY_RESULT,
  interfaces: [{ name: "host0" }, { name: "eth0", sandbox: "/netns", mtu: 1400 }],
  ips: [
    { address: "10.0.0.2/32", interface: 1 },
    { address: "fd00::2/128", interface: 1 },
  ],
};

const ADD: Readonly<Record<string, (call: AddCall, context: CallContext) => Promise<CniResult>>> = {
  plain: async () => RESULT,
  pass: async (call) => call.prevResult ?? EMPTY_RESULT,
  throw: async () => {
    throw new TypeError("a fault of ours");
  },
  timer: () => {
    setTimeout(() => {
      throw new Error("thrown in a timer");
    }, 1);
    return new Promise(() => {});
  },
  rejection: () => {
    void Promise.reject(new Error("thrown in a promise"));
    return new Promise(() => {});
  },
  big: async () => ({
    ...RESULT,
    dns: { ...RESULT.dns, search: Array.from({ length: 1024 }, () => "x".repeat(1024)) },
  }),
  prints: async () => {
    console.log("a library prints");
    console.info("a library prints");
    console.debug("a library prints");
    return RESULT;
  },
  lingers: async () => {
    setInterval(() => {}, 1_000);
    Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    return RESULT;
  },
  delegates: (call, { signal }) =>
    delegateAdd(
      {
        type: process.env["SPY_TYPE"] ?? "",
        command: "ADD",
        environment: call.environment,
        stdin: call.stdin,
        limitMilliseconds: 20_000,
        signal,
      },
      call.cniVersion,
    ),
  hangs: () => {
    reportReady();
    return new Promise(() => {});
  },
  undoes: (_, { signal }) => {
    const stopped = undoneWhenStopped(signal);
    reportReady();
    return stopped;
  },
  "undoes after a fault": (_, { signal }) => {
    setTimeout(() => {
      throw new Error("thrown in a timer");
    }, 1);
    return undoneWhenStopped(signal);
  },
};

function undoneWhenStopped(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => {
      writeFileSync(process.env["SPY_UNDONE"] ?? "", "undone");
      reject(signal.reason);
    });
  });
}

function reportReady(): void {
  writeFileSync(process.env["SPY_READY"] ?? "", "ready");
}

const face = { about: "Spy plugin", supportedVersions: CNI_VERSIONS };

await runPlugin(async () => ({
  ...face,
  add: ADD[process.env["SPY"] ?? "plain"] ?? (async () => RESULT),
  del: async () => {},
  check: async () => {},
  gc: async () => {},
  status: async () => {},
}));
