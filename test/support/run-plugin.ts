/** Runs an executable as a container runtime does: explicit environment, config on stdin, all output captured. */
import { join } from "node:path";
import { identity } from "../../src/identity.ts";

export interface PluginCall {
  /** Only these variables; the test's own environment is not passed on. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Text and bytes are sent unchanged, anything else as JSON. */
  readonly stdin?: unknown;
  readonly args?: readonly string[];
}

export interface PluginRun {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** One of the product's programs, as built by `make build`. */
export function builtProgram(name: string = identity.product): string {
  return join(import.meta.dir, "../../dist/bin", name);
}

/** The variables that a runtime sets for an attachment. */
export const ATTACHMENT_ENV = {
  CNI_CONTAINERID: "c1",
  CNI_NETNS: "/var/run/netns/vt-absent",
  CNI_IFNAME: "eth0",
  CNI_PATH: "/opt/cni/bin",
} as const;

export async function runPlugin(program: string | readonly string[], call: PluginCall = {}): Promise<PluginRun> {
  const command = typeof program === "string" ? [program] : program;
  const child = Bun.spawn([...command, ...(call.args ?? [])], {
    env: presentOf(call.env ?? {}),
    stdin: bytesOf(call.stdin),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { exitCode, stdout, stderr };
}

/** The JSON error of a failed run; throws if the run did not fail as a CNI plugin must. */
export function cniErrorOfRun(run: PluginRun): { code: number; msg: string; details?: string; cniVersion: string } {
  const shown = JSON.stringify(run);
  if (run.exitCode !== 1) throw new Error(`Not a failure with exit code 1: ${shown}`);
  const error: unknown = JSON.parse(run.stdout);
  if (typeof error !== "object" || error === null || !("code" in error) || !("msg" in error)) {
    throw new Error(`Not a CNI error: ${shown}`);
  }
  if (typeof error.code !== "number" || typeof error.msg !== "string") throw new Error(`Not a CNI error: ${shown}`);
  return error as { code: number; msg: string; cniVersion: string };
}

function bytesOf(stdin: unknown): Uint8Array {
  if (stdin instanceof Uint8Array) return stdin;
  if (stdin === undefined) return new Uint8Array();
  return Buffer.from(typeof stdin === "string" ? stdin : JSON.stringify(stdin));
}

function presentOf(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const present: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) if (value !== undefined) present[name] = value;
  return present;
}
