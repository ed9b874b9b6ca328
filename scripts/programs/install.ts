/**
 * Installs the declared programs that are missing: as root on Debian. Elsewhere
 * the missing packages are listed, and the tests that need them are skipped
 * with that reason.
 */
import { existsSync } from "node:fs";
import { PACKAGES, type Program } from "./table.ts";

/** `programs`: the required ones; by default all of them. */
export async function installPrograms(programs?: readonly Program[]): Promise<void> {
  const packages = missingPackages(programs ?? Object.keys(PACKAGES));
  if (packages.length === 0) return;

  const canInstall = process.getuid?.() === 0 && Bun.which("apt-get") !== null;
  if (!canInstall) {
    console.log(`missing: ${packages.join(", ")}: tests that need them are skipped (as root, this installs them)`);
    return;
  }
  const environment = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const quiet = { stdin: "ignore", stdout: "ignore", stderr: "inherit", env: environment } as const;
  await Bun.spawn(["apt-get", "update", "-qq"], quiet).exited;
  const install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", ...packages];
  const code = await Bun.spawn(install, quiet).exited;
  if (code !== 0) console.error(`apt-get install ${packages.join(" ")}: exit code ${code}`);
}

function missingPackages(programs: readonly string[]): readonly string[] {
  const missing = programs.filter((program) => !isInstalled(program));
  return [...new Set(missing.flatMap((program) => PACKAGES[program] ?? []))];
}

function isInstalled(program: string): boolean {
  return program.includes("/") ? existsSync(program) : Bun.which(program) !== null;
}
