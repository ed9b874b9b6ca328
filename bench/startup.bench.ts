/**
 * The cost of a plugin call before it does any work: VERSION, compared with a
 * compiled program that does nothing and with a plugin in Go. The output is read
 * through a pipe, as a runtime does.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { identity } from "../src/identity.ts";
import { commandCandidate } from "./support/command-candidate.ts";
import { runComparison } from "./support/comparison.ts";
import { buildEmptyProgram, buildProduct } from "./support/programs.ts";
import { report } from "./support/report.ts";

const GO_PLUGIN = "/usr/lib/cni/host-local";
const EMPTY = "empty compiled program";

const folder = mkdtempSync(join(tmpdir(), "vt-bench-"));
try {
  const names = await buildProduct();
  const empty = await buildEmptyProgram(folder);
  const call = { environment: { CNI_COMMAND: "VERSION" }, stdin: '{"cniVersion":"1.0.0"}' };
  const candidates = [
    commandCandidate(EMPTY, { ...call, command: [empty] }),
    commandCandidate(`${identity.product} VERSION`, { ...call, command: [join(names, identity.product)] }),
    ...(existsSync(GO_PLUGIN) ? [commandCandidate("host-local VERSION (Go)", { ...call, command: [GO_PLUGIN] })] : []),
  ];
  const comparison = { candidates, baseline: EMPTY, warmUpRounds: 5 };
  await report("startup", [
    await runComparison({ ...comparison, title: "Start-up", rounds: 200 }),
    await runComparison({ ...comparison, title: "Start-up", rounds: 20, concurrency: 10 }),
  ]);
} finally {
  rmSync(folder, { recursive: true });
}
