/** What the reports of the test pods mean for each check. Pure. */
import type { Check } from "./checks.ts";
import { type ProbeResult, probeKey, type Round } from "./probe.ts";
import { remedyFor } from "./remedy.ts";

export interface CheckResult {
  readonly title: string;
  readonly from: string;
  readonly to: string;
  readonly family: Check["family"];
  readonly result: "ok" | "failed" | "skipped";
  readonly reason?: string;
  /** What to do about a failure. */
  readonly remedy?: string;
}

export interface Reports {
  /** The last round of each client that counts for this phase; absent as long as there is none. */
  readonly rounds: ReadonlyMap<string, Round>;
  /** Addresses of the clients. */
  readonly addresses: ReadonlyMap<string, readonly string[]>;
  /** `baselineKey()` of every connection that was open before there was a policy. */
  readonly baseline: ReadonlySet<string>;
}

/** Of one connection of one client. */
export function baselineKey({ client, probe }: Pick<Check, "client" | "probe">): string {
  return `${client} ${probeKey(probe)}`;
}

export function isOpen(check: Check, { rounds }: Pick<Reports, "rounds">): boolean {
  return rounds.get(check.client)?.results[probeKey(check.probe)]?.kind === "ok";
}

/** Whether there is a result, and it is the expected one; or there is nothing that could be expected. */
export function isSettled(check: Check, reports: Reports): boolean {
  return judge(check, reports).result !== "failed";
}

export function judge(check: Check, reports: Reports): CheckResult {
  const { title, from, to, family, phase } = check;
  const place = { title, from, to, family };
  if (phase !== "connections" && !reports.baseline.has(baselineKey(check))) {
    return { ...place, result: "skipped", reason: "not reachable even without a policy" };
  }
  const reason = problemOf(check, reports);
  if (reason === undefined) return { ...place, result: "ok" };
  const result = resultOf(check, reports);
  return { ...place, result: "failed", reason, remedy: remedyFor(check, result) };
}

function resultOf({ client, probe }: Check, { rounds }: Reports): ProbeResult | undefined {
  return rounds.get(client)?.results[probeKey(probe)];
}

function problemOf(check: Check, reports: Reports): string | undefined {
  const result = resultOf(check, reports);
  if (result === undefined) return `pod "${check.client}" has not reported any result`;
  if (check.expected === "closed") {
    return result.kind === "ok" ? "the connection is allowed, although a NetworkPolicy denies it" : undefined;
  }
  if (result.kind !== "ok") return result.message;
  const own = reports.addresses.get(check.client) ?? [];
  if (!check.keepsSource || result.seenAs === undefined || own.length === 0) return undefined;
  if (own.some((address) => isSame(address, result.seenAs ?? ""))) return undefined;
  return `the server sees the address ${result.seenAs} instead of that of the pod (${own.join(", ")})`;
}

/** Both are written by programs that shorten IPv6 addresses in the same way, except for the case of letters. */
function isSame(left: string, right: string): boolean {
  return left.toLowerCase() === right.toLowerCase();
}

/** Each of these also needs the connection of pods between the same nodes. */
const NEEDS_PODS = new Set(["pod to Service", "host to pod", "pod to host port"]);
const PODS = "pod to pod";

export function withCauses(results: readonly CheckResult[]): readonly CheckResult[] {
  const failed = new Set(results.filter(({ title, result }) => title === PODS && result === "failed").map(pathOf));
  return results.map((each) => {
    const isCaused = each.result === "failed" && NEEDS_PODS.has(each.title) && failed.has(pathOf(each));
    return isCaused ? { ...each, remedy: `first fix "${PODS}", ${each.from} to ${each.to}` } : each;
  });
}

function pathOf({ from, to, family }: CheckResult): string {
  return `${from}\n${to}\n${family}`;
}
