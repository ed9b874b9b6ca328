/**
 * The root file system of containers under test: Debian's static busybox, also as a
 * one-layer OCI image that needs no registry.
 */
import { chmodSync, copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Host } from "./host.ts";

/** Named like an image of a local registry, so that no client adds a registry of its own. */
export const IMAGE = "vt.invalid/busybox:1";

/** Runs until it is killed, as the sandbox of a pod needs. */
const PAUSE = ["/bin/sleep", "1000000"];

const APPLETS = ["sh", "ip", "ping", "ping6", "httpd", "nc", "cat", "sleep", "true", "mkdir", "hostname", "wget"];

/** Why the root file system cannot be created; undefined if it can. */
export function rootfsProblem(): string | undefined {
  const busybox = Bun.which("busybox");
  if (busybox === null) return "needs busybox-static";
  return needsLoader(readFileSync(busybox)) ? "needs busybox-static (this busybox is dynamic)" : undefined;
}

/** Whether a 64-bit ELF program has a header of type 3, the path of a dynamic loader. */
function needsLoader(program: Buffer): boolean {
  const [start, size, count] = [
    Number(program.readBigUInt64LE(32)),
    program.readUInt16LE(54),
    program.readUInt16LE(56),
  ];
  return Array.from({ length: count }, (_, index) => program.readUInt32LE(start + index * size)).includes(3);
}

/** Creates the root file system in the host; returns its path there. `/www/index.html` contains "hello\n". */
export function makeRootfs(host: Host): string {
  const rootfs = join(host.directory, "rootfs");
  const outside = host.view(rootfs);
  for (const folder of ["bin", "proc", "sys", "dev", "tmp", "etc", "run", "root", "www"]) {
    mkdirSync(join(outside, folder), { recursive: true });
  }
  const busybox = join(outside, "bin/busybox");
  copyFileSync(Bun.which("busybox") ?? "/bin/busybox", busybox);
  chmodSync(busybox, 0o755);
  for (const applet of APPLETS) symlinkSync("busybox", join(outside, "bin", applet));
  writeFileSync(join(outside, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n");
  writeFileSync(join(outside, "www/index.html"), "hello\n");
  return rootfs;
}

/** Creates the image's archive from the root file system; returns its path in the host. */
export async function makeImageArchive(host: Host, rootfs: string): Promise<string> {
  const layout = join(host.directory, "image");
  mkdirSync(host.view(join(layout, "blobs/sha256")), { recursive: true });
  await host.must(["tar", "--numeric-owner", "-C", rootfs, "-cf", join(layout, "layer.tar"), "."]);

  const blob = (content: Uint8Array | string) => {
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    const hash = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
    writeFileSync(host.view(join(layout, "blobs/sha256", hash)), bytes);
    return { digest: `sha256:${hash}`, size: bytes.length };
  };
  const layer = blob(readFileSync(host.view(join(layout, "layer.tar"))));
  const config = blob(
    JSON.stringify({
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      os: "linux",
      config: { Entrypoint: PAUSE, Env: ["PATH=/bin"] },
      rootfs: { type: "layers", diff_ids: [layer.digest] },
    }),
  );
  const oci = "application/vnd.oci.image";
  const manifest = blob(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: `${oci}.manifest.v1+json`,
      config: { mediaType: `${oci}.config.v1+json`, ...config },
      layers: [{ mediaType: `${oci}.layer.v1.tar`, ...layer }],
    }),
  );
  const annotations = { "io.containerd.image.name": IMAGE, "org.opencontainers.image.ref.name": "1" };
  const index = { schemaVersion: 2, manifests: [{ mediaType: `${oci}.manifest.v1+json`, ...manifest, annotations }] };
  host.writeFile(join(layout, "index.json"), JSON.stringify(index));
  host.writeFile(join(layout, "oci-layout"), `{"imageLayoutVersion":"1.0.0"}`);

  const archive = join(host.directory, "image.tar");
  await host.must(["tar", "-C", layout, "-cf", archive, "oci-layout", "index.json", "blobs"]);
  return archive;
}
