/** What the demo needs of the machine: fetched where it can be, named where it cannot. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { hostProblem } from "../../test/support/host.ts";
import type { StoreKind } from "../../test/support/test-store.ts";
import { installPrograms } from "../programs/install.ts";
import type { Program } from "../programs/table.ts";

const REPOSITORY = join(import.meta.dir, "../..");
export const PROGRAMS = join(REPOSITORY, "dist/bin");

/** The private host has folders of its own there. */
const HIDDEN = ["/opt/", "/run/", "/var/lib/", "/var/log/", "/etc/"];

const NEEDED: Readonly<Record<StoreKind, readonly Program[]>> = {
  embedded: ["ip", "ping"],
  etcd: ["ip", "ping", "etcd", "busybox"],
};

/** Each as a sentence for the person at the terminal; empty when the demo can begin. */
export async function missingMeans(store: StoreKind): Promise<readonly string[]> {
  if (process.getuid?.() !== 0) return ["only root may make network namespaces: sudo make demo"];
  if (HIDDEN.some((folder) => REPOSITORY.startsWith(folder))) {
    return [`it works on a host with its own ${HIDDEN.join(", ")}: clone the repository to another place`];
  }
  await installPrograms(NEEDED[store]);
  const missing = NEEDED[store].filter((program) => Bun.which(program) === null);
  const problem = hostProblem();
  return [
    ...missing.map((program) => `the program "${program}" is missing`),
    ...(problem === undefined ? [] : [problem]),
    ...(existsSync(PROGRAMS) ? [] : ["nothing is built: run make build"]),
  ];
}
