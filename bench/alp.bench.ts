/**
 * Application layer policy: what a decision adds to a request in Envoy, for the sidecar and for Calico's, with the same
 * policies of 1, 100 and 1,000 rules, the last of which decides; beside Envoy alone and an authorizer that decides nothing.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { part } from "../test/parts/build.ts";
import { envoyProblem, startEnvoy } from "../test/support/envoy.ts";
import { freePorts } from "../test/support/etcd.ts";
import { temporaryDirectory } from "../test/support/temporary-directory.ts";
import {
  type Authorizer,
  type AuthorizerStart,
  PEER,
  startIdleAuthorizer,
  startOwnSidecar,
  startPeerSidecar,
} from "./support/alp-authorizers.ts";
import { type AlpLoad, POD } from "./support/alp-load.ts";
import { type AlpCandidate, measureAlp, wrongDecisions } from "./support/alp-measurements.ts";
import { alpMemoryTable, alpTimesTable } from "./support/alp-table.ts";
import { buildProduct } from "./support/programs.ts";
import { writeResults } from "./support/report.ts";

const LOADS: readonly AlpLoad[] = [
  { title: "1 rule", rules: 1, sets: 1, addressesPerSet: 3 },
  { title: "100 rules", rules: 100, sets: 100, addressesPerSet: 3 },
  { title: "1,000 rules", rules: 1_000, sets: 1_000, addressesPerSet: 3 },
  { title: "1,000 rules, 10,000 addresses", rules: 1_000, sets: 10, addressesPerSet: 1_000 },
];
const ROUNDS = Math.min(Number(process.env["BENCH_ROUNDS"] ?? 40), 40);
const CONCURRENCY = 16;
/** Long enough for every authorizer: a request that is denied because its decision is late would look quick. */
const DECISION_MILLISECONDS = 60_000;
const PLAN = {
  rounds: ROUNDS,
  concurrency: CONCURRENCY,
  requests: { alone: 100, atOnce: 320 },
  warmUpRequests: ROUNDS * 100,
};

await part("envoy");
const problem = envoyProblem();
if (problem === undefined) await compare();
else console.log(`skipped: ${problem}`);

async function compare(): Promise<void> {
  await using undo = new AsyncDisposableStack();
  await buildProduct();
  const peer = await part("dikastes");
  if ("missing" in peer) console.log(`without Calico: ${peer.missing}`);
  const directory = temporaryDirectory("alp");
  undo.defer(directory.remove);
  const candidates = [await startCandidate(directory.path, undo)];
  const idle = { directory: directory.path, undo };
  candidates.push(await startCandidate(directory.path, undo, await startIdleAuthorizer(idle)));
  const healthPorts = await freePorts(LOADS.length);
  for (const [index, load] of LOADS.entries()) {
    const own = placeOf(directory.path, `own-${index}`, undo);
    const sidecar = await startOwnSidecar(load, { ...own, healthPort: healthPorts[index] ?? 0 });
    if ("path" in peer) {
      const place = placeOf(directory.path, `peer-${index}`, undo);
      const calico = await startPeerSidecar(load, { ...place, programs: peer.path });
      candidates.push(await startCandidate(place.directory, undo, calico, load));
    }
    candidates.push(await startCandidate(own.directory, undo, sidecar, load));
  }
  await requireRightDecisions(candidates);
  const results = await measureAlp(candidates, PLAN);
  console.log(alpTimesTable(results, { peer: PEER, concurrency: CONCURRENCY }));
  console.log(alpMemoryTable(results));
  await writeResults("alp", { loads: LOADS, results });
}

function placeOf(root: string, name: string, undo: AsyncDisposableStack): AuthorizerStart {
  const directory = join(root, name);
  mkdirSync(directory);
  return { directory, undo };
}

/** A proxy with one thread, which responds itself: no application takes part in the times. */
async function startCandidate(
  place: string,
  undo: AsyncDisposableStack,
  authorizer?: Authorizer,
  load?: AlpLoad,
): Promise<AlpCandidate> {
  const [port = 0] = await freePorts(1);
  const directory = join(place, `envoy-${port}`);
  mkdirSync(directory);
  const envoy = await startEnvoy({
    directory,
    listeners: [{ kind: "http", address: POD, port }],
    decisionMilliseconds: DECISION_MILLISECONDS,
    ...(authorizer === undefined ? {} : { authorizer: authorizer.socket }),
  });
  undo.defer(envoy.stop);
  return { port, ...(authorizer === undefined ? {} : { authorizer }), ...(load === undefined ? {} : { load }) };
}

/** Figures of sidecars that decide differently would not compare. */
async function requireRightDecisions(candidates: readonly AlpCandidate[]): Promise<void> {
  for (const candidate of candidates) {
    const limit = performance.now() + 20_000;
    for (;;) {
      const wrong = await wrongDecisions(candidate);
      if (wrong.length === 0) break;
      const title = `${candidate.authorizer?.name} with ${candidate.load?.title}`;
      // Calico's sidecar does not say when it is synchronised.
      if (performance.now() > limit) throw new Error(`${title} decides wrongly: ${wrong.join("; ")}`);
      await Bun.sleep(100);
    }
  }
}
