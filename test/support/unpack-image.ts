/** Unpacks the archive of an image without a container engine. */
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

/** Returns a line "mode path" for every file of every layer. */
export async function unpackImage(archive: string, rootfs: string): Promise<readonly string[]> {
  const layout = `${rootfs}.layout`;
  for (const directory of [layout, rootfs]) mkdirSync(directory);
  await tar(["-xf", archive, "-C", layout]);
  const blob = ({ digest }: { digest: string }) => readFileSync(join(layout, "blobs", digest.replace(":", "/")));
  const { manifests } = JSON.parse(readFileSync(join(layout, "index.json"), "utf8"));
  const { layers } = JSON.parse(blob(manifests[0]).toString());
  const lines: string[] = [];
  for (const layer of layers) {
    const content = Bun.zstdDecompressSync(blob(layer));
    await tar(["-xp", "-C", rootfs], content);
    lines.push(...(await tar(["-tv", "--numeric-owner"], content)).trim().split("\n"));
  }
  rmSync(layout, { recursive: true });
  // "mode owner/group size date time path"
  return lines.map((line) => line.replace(/^(\S+) +0\/0 +\d+ \S+ \S+ /, "$1 "));
}

async function tar(args: readonly string[], input?: Uint8Array): Promise<string> {
  const child = Bun.spawn(["tar", ...args], { stdin: input ?? "ignore", stdout: "pipe", stderr: "pipe" });
  const [printed, complaint] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(`tar ${args.join(" ")}: ${complaint}`);
  return printed;
}
