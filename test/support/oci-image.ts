/** Archives of one-layer OCI images, made from a directory: no registry and no engine is needed. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface ImagePlan {
  /** With a registry that does not exist, so that no client adds one of its own. */
  readonly name: string;
  /** The directory whose content becomes the layer. */
  readonly rootfs: string;
  readonly entrypoint: readonly string[];
  readonly command?: readonly string[];
  /** The file to write. */
  readonly archive: string;
}

const MEDIA_TYPE = "application/vnd.oci.image";

/** Writes the archive. */
export async function writeImageArchive({ name, rootfs, entrypoint, command, archive }: ImagePlan): Promise<void> {
  const layout = `${archive}.layout`;
  const blobs = join(layout, "blobs/sha256");
  mkdirSync(blobs, { recursive: true });
  const blob = (content: Uint8Array | string) => {
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    const hash = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
    writeFileSync(join(blobs, hash), bytes);
    return { digest: `sha256:${hash}`, size: bytes.length };
  };

  const layerFile = `${archive}.layer`;
  await tar(["--numeric-owner", "-C", rootfs, "-cf", layerFile, "."]);
  const layer = blob(readFileSync(layerFile));
  const config = blob(
    JSON.stringify({
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      os: "linux",
      config: { Entrypoint: entrypoint, Cmd: command, Env: ["PATH=/bin"] },
      rootfs: { type: "layers", diff_ids: [layer.digest] },
    }),
  );
  const manifest = blob(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: `${MEDIA_TYPE}.manifest.v1+json`,
      config: { mediaType: `${MEDIA_TYPE}.config.v1+json`, ...config },
      layers: [{ mediaType: `${MEDIA_TYPE}.layer.v1.tar`, ...layer }],
    }),
  );
  const annotations = { "io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.split(":").at(-1) };
  const manifests = [{ mediaType: `${MEDIA_TYPE}.manifest.v1+json`, ...manifest, annotations }];
  writeFileSync(join(layout, "index.json"), JSON.stringify({ schemaVersion: 2, manifests }));
  writeFileSync(join(layout, "oci-layout"), `{"imageLayoutVersion":"1.0.0"}`);
  await tar(["-C", layout, "-cf", archive, "oci-layout", "index.json", "blobs"]);
  for (const path of [layout, layerFile]) rmSync(path, { recursive: true });
}

async function tar(args: readonly string[]): Promise<void> {
  const child = Bun.spawn(["tar", ...args], { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const complaint = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`tar ${args.join(" ")}: ${complaint}`);
}
