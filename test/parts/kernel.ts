/**
 * Parts that are kernels of Debian for the guests of test/vm: `vmlinuz`, and `lib/modules/VERSION` with its list of
 * dependencies. The package is pinned by its hash, and comes from where apt of this machine gets packages.
 */
import { downloadPackage } from "../../scripts/image/download.ts";
import type { KernelPart } from "./table.ts";

/** Why this machine cannot have the part; undefined if it can. */
export function kernelProblem(name: string, row: KernelPart): string | undefined {
  if (process.arch !== row.architecture) return `${name} exists only for ${row.architecture}`;
  const missing = ["apt-get", "dpkg-deb", "depmod"].filter((program) => Bun.which(program) === null);
  return missing.length === 0 ? undefined : `${name} needs ${missing.join(", ")}`;
}

// Debian 12 has the modules below /lib, Debian 13 below /usr/lib: here they are at both paths.
const SCRIPT = `
  set -e
  [ -d "$final" ] && exit 0
  rm -rf "$final".new && mkdir -p "$final".new/usr/lib
  ln -s usr/lib "$final".new/lib
  dpkg-deb -x "$package" "$final".new/unpacked
  mv "$final".new/unpacked/boot/vmlinuz-* "$final".new/vmlinuz
  mv "$(find "$final".new/unpacked -type d -path '*lib/modules')" "$final".new/usr/lib/modules
  rm -r "$final".new/unpacked
  for release in "$final".new/lib/modules/*; do depmod -b "$final".new "\${release##*/}"; done
  mv "$final".new "$final"`;

/** Unpacks in a directory beside the final one and renames it: an existing part is complete. Returns the reason if it fails. */
export async function unpackKernel(row: KernelPart, directory: string): Promise<string | undefined> {
  const found = await downloadPackage(row.package, row.day).catch((error: Error) => error);
  if (found instanceof Error) return found.message;
  const child = Bun.spawn(["flock", `${directory}.lock`, "sh", "-c", SCRIPT], {
    env: { ...process.env, final: directory, package: found },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const [complaints, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  return code === 0 ? undefined : complaints.trim().split("\n").slice(-3).join("; ");
}
