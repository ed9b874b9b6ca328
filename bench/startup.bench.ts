/**
 * What a call of the plugin costs before it does anything: VERSION, against a
 * compiled program that does nothing and against a plugin in Go. Every answer is
 * read through a pipe: what throws it to /dev/null is no runtime.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { identity } from "../src/identity.ts";
import { commandContender } from "./support/command.ts";
import { runContest } from "./support/contest.ts";
import { buildEmptyProgram, buildProduct } from "./support/programs.ts";
import { report } from "./support/report.ts";

const GO_PLUGIN = "/usr/lib/cni/host-local";
const EMPTY = "empty compiled program";

const folder = mkdtempSync(join(tmpdir(), "vt-bench-"));
try {
  const names = await buildProduct();
  const empty = await buildEmptyProgram(folder);
  const call = { environment: { CNI_COMMAND: "VERSION" }, stdin: '{"cniVersion":"1.0.0"}' };
  const contenders = [
    commandContender(EMPTY, { ...call, command: [empty] }),
    commandContender(`${identity.product} VERSION`, { ...call, command: [join(names, identity.product)] }),
    ...(existsSync(GO_PLUGIN) ? [commandContender("host-local VERSION (Go)", { ...call, command: [GO_PLUGIN] })] : []),
  ];
  const contest = { contenders, baseline: EMPTY, warmUpRounds: 5 };
  await report("startup", [
    await runContest({ ...contest, title: "Start-up", rounds: 200 }),
    await runContest({ ...contest, title: "Start-up", rounds: 20, concurrency: 10 }),
  ]);
} finally {
  rmSync(folder, { recursive: true });
}
