/** What the demo requires: installed if possible, reported as missing otherwise. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { hostProblem } from "../../test/support/host.ts";
import type { StoreKind } from "../../test/support/test-store.ts";
import { installPrograms } from "../programs/install.ts";
import type { Program } from "../programs/table.ts";

const REPOSITORY = join(import.meta.dir, "../..");
export const PROGRAMS = join(REPOSITORY, "dist/bin");

/** The private host has its own directories here. */
const HIDDEN = ["/opt/", "/run/", "/var/lib/", "/var/log/", "/etc/"];

const NEEDED: Readonly<Record<StoreKind, readonly Program[]>> = {
  embedded: ["ip", "ping"],
  etcd: ["ip", "ping", "etcd", "busybox"],
};

/** Messages for the user; empty if the demo can start. */
export function missingRequirements(store: StoreKind): Promise<readonly string[]> {
  return missingOnHost(NEEDED[store]);
}

/** What every private host needs, and these programs. */
export async function missingOnHost(programs: readonly Program[], command = "make demo"): Promise<readonly string[]> {
  if (process.getuid?.() !== 0) return [`only root may create network namespaces: sudo ${command}`];
  if (HIDDEN.some((folder) => REPOSITORY.startsWith(folder))) {
    return [`its private host has its own ${HIDDEN.join(", ")}: clone the repository to another directory`];
  }
  await installPrograms(programs);
  const missing = programs.filter((program) => Bun.which(program) === null);
  const problem = hostProblem();
  return [
    ...missing.map((program) => `the program "${program}" is missing`),
    ...(problem === undefined ? [] : [problem]),
    ...(existsSync(PROGRAMS) ? [] : ["the programs are not built: run make build"]),
  ];
}
