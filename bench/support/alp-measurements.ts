/** Measures requests through proxies with different authorizers, in turns. */
import type { Authorizer } from "./alp-authorizers.ts";
import { type AlpClient, openAlpClient } from "./alp-client.ts";
import { type AlpLoad, CLIENT, POD, type Probe, probesOf } from "./alp-load.ts";
import type { AlpResult } from "./alp-table.ts";
import { type ProcessMemory, processMemory } from "./process-memory.ts";
import { processorMilliseconds } from "./processor-clock.ts";

/** A proxy, and what decides for it. */
export interface AlpCandidate {
  readonly port: number;
  /** Absent: nobody is asked. */
  readonly authorizer?: Authorizer;
  /** What it decides with. */
  readonly load?: AlpLoad;
}

export interface AlpPlan {
  readonly rounds: number;
  /** Connections with one request each at a time. */
  readonly concurrency: number;
  /** Requests of a candidate in each round: one after another, and over all connections. */
  readonly requests: { readonly alone: number; readonly atOnce: number };
  readonly warmUpRequests: number;
}

/** Each round starts with another candidate. */
export async function measureAlp(candidates: readonly AlpCandidate[], plan: AlpPlan): Promise<readonly AlpResult[]> {
  using undo = new DisposableStack();
  const measured: Measured[] = [];
  for (const candidate of candidates) measured.push(await prepare(candidate, plan, undo));
  for (let round = 0; round < plan.rounds; round++) {
    const first = round % measured.length;
    for (const each of [...measured.slice(first), ...measured.slice(0, first)]) await takeTurn(each, plan);
  }
  return measured.map(resultOf);
}

/** Requests that the candidate does not decide as its policies say; empty if it decides all as it should. */
export async function wrongDecisions({ port, load }: AlpCandidate): Promise<readonly string[]> {
  if (load === undefined) return [];
  const wrong: string[] = [];
  for (const probe of probesOf(load)) {
    const status = await statusOf(port, probe);
    if (status !== (probe.isAllowed ? 200 : 403))
      wrong.push(`${probe.method} ${probe.path} from ${probe.source}: ${status}`);
  }
  return wrong;
}

interface Measured {
  readonly candidate: AlpCandidate;
  readonly clients: { readonly alone: AlpClient; readonly atOnce: AlpClient };
  readonly alone: number[];
  readonly atOnce: number[];
  readonly idle: ProcessMemory | undefined;
  /** CPU time of the authorizer when the first turn began. */
  readonly cpuBefore: number;
  loaded: ProcessMemory | undefined;
}

async function prepare(candidate: AlpCandidate, plan: AlpPlan, undo: DisposableStack): Promise<Measured> {
  const { port, load, authorizer } = candidate;
  const idle = authorizer && processMemory(authorizer.pid);
  const path = load === undefined ? "/" : (probesOf(load)[0]?.path ?? "");
  const target = { address: POD, port, path };
  const alone = undo.use(await openAlpClient(target, 1));
  const atOnce = undo.use(await openAlpClient(target, plan.concurrency));
  await alone.send(plan.warmUpRequests / 4);
  await atOnce.send(plan.warmUpRequests);
  const cpuBefore = authorizer === undefined ? 0 : processorMilliseconds(authorizer.pid);
  return { candidate, clients: { alone, atOnce }, alone: [], atOnce: [], idle, cpuBefore, loaded: undefined };
}

async function takeTurn(measured: Measured, { requests }: AlpPlan): Promise<void> {
  const { clients, candidate } = measured;
  measured.alone.push(...(await clients.alone.send(requests.alone)));
  measured.atOnce.push(...(await clients.atOnce.send(requests.atOnce)));
  if (candidate.authorizer === undefined) return;
  const memory = processMemory(candidate.authorizer.pid);
  if (measured.loaded === undefined || memory.residentBytes > measured.loaded.residentBytes) measured.loaded = memory;
}

/** The CPU time includes what the authorizer did between the turns, such as collecting garbage. */
function resultOf({ candidate, alone, atOnce, idle, loaded, cpuBefore }: Measured): AlpResult {
  const { authorizer, load } = candidate;
  const times = { load: load?.title ?? "", authorizer: authorizer?.name ?? "none: Envoy alone", alone, atOnce };
  if (authorizer === undefined || idle === undefined || loaded === undefined) return times;
  const spent = processorMilliseconds(authorizer.pid) - cpuBefore;
  return { ...times, process: { cpuMilliseconds: spent / (alone.length + atOnce.length), idle, loaded } };
}

async function statusOf(port: number, { method, path, source }: Probe): Promise<number> {
  const from = source === CLIENT ? [] : ["--interface", source];
  const url = `http://${POD}:${port}${path}`;
  const command = ["curl", "-s", "-S", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}", ...from, "-X", method, url];
  const child = Bun.spawn(command, { stdout: "pipe", stderr: "inherit" });
  const [output] = await Promise.all([child.stdout.text(), child.exited]);
  return Number(output);
}
