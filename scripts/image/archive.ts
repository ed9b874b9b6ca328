/**
 * Writes OCI image archives with `tar` alone: neither a registry nor a container engine is needed.
 * Reproducible: the bytes depend only on the plan and on the names, content and modes of the files, not on their times,
 * their owners or their order in the directories.
 */
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { reproducibleTar } from "../reproducible-tar.ts";

export interface ImageLayer {
  /** Its content becomes the layer; every file belongs to root there. */
  readonly directory: string;
  /** Seconds since 1970: the time of every file in the layer. */
  readonly time: number;
}

export interface ImagePlan {
  /** With registry and tag. */
  readonly name: string;
  readonly architecture: ImageArchitecture;
  readonly layers: readonly ImageLayer[];
  /** Absent: a container must name its program. */
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  /** Where programs are looked for. */
  readonly path: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Seconds since 1970: when the image was created. */
  readonly time: number;
  /** Of zstd: 9 takes four times as long as 3, and saves a tenth. */
  readonly compressionLevel: number;
  /** The file to write. */
  readonly archive: string;
}

/** As OCI and Debian call it. */
export type ImageArchitecture = "amd64" | "arm64";

const MEDIA_TYPE = "application/vnd.oci.image";

/** The architecture of this machine. */
export const OWN_ARCHITECTURE: ImageArchitecture = process.arch === "arm64" ? "arm64" : "amd64";

export async function writeImageArchive(plan: ImagePlan): Promise<void> {
  const { name, layers, time, archive } = plan;
  const layout = `${archive}.layout`;
  const unfinished = `${archive}.new`;
  rmSync(layout, { recursive: true, force: true });
  mkdirSync(join(layout, "blobs/sha256"), { recursive: true });

  const written: WrittenLayer[] = [];
  for (const layer of layers) written.push(await writeLayer(layout, layer, plan.compressionLevel));
  const config = writeBlob(layout, JSON.stringify(configOf(plan, written)));
  const manifest = writeBlob(layout, JSON.stringify(manifestOf(config, written)));
  const annotations = { "io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.split(":").at(-1) };
  const manifests = [{ mediaType: `${MEDIA_TYPE}.manifest.v1+json`, ...manifest, annotations }];
  writeFileSync(join(layout, "index.json"), JSON.stringify({ schemaVersion: 2, manifests }));
  writeFileSync(join(layout, "oci-layout"), `{"imageLayoutVersion":"1.0.0"}`);

  const content = await reproducibleTar(layout, ["--mode=u=rwX,go=rX", "oci-layout", "index.json", "blobs"], time);
  writeFileSync(unfinished, content);
  renameSync(unfinished, archive);
  rmSync(layout, { recursive: true });
}

interface Blob {
  readonly digest: string;
  readonly size: number;
}

interface WrittenLayer {
  readonly blob: Blob;
  /** Of the layer before it was compressed. */
  readonly digest: string;
}

async function writeLayer(layout: string, { directory, time }: ImageLayer, level: number): Promise<WrittenLayer> {
  const content = await reproducibleTar(directory, readdirSync(directory).sort(), time);
  return { blob: writeBlob(layout, Bun.zstdCompressSync(content, { level })), digest: digestOf(content) };
}

function writeBlob(layout: string, content: Uint8Array | string): Blob {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const digest = digestOf(bytes);
  writeFileSync(join(layout, "blobs", digest.replace(":", "/")), bytes);
  return { digest, size: bytes.length };
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}`;
}

function configOf(plan: ImagePlan, layers: readonly WrittenLayer[]): object {
  const { architecture, entrypoint, command, path, labels, time } = plan;
  return {
    created: new Date(time * 1000).toISOString(),
    architecture,
    os: "linux",
    config: { Entrypoint: entrypoint, Cmd: command, Env: [`PATH=${path}`], Labels: labels },
    rootfs: { type: "layers", diff_ids: layers.map(({ digest }) => digest) },
  };
}

function manifestOf(config: Blob, layers: readonly WrittenLayer[]): object {
  return {
    schemaVersion: 2,
    mediaType: `${MEDIA_TYPE}.manifest.v1+json`,
    config: { mediaType: `${MEDIA_TYPE}.config.v1+json`, ...config },
    layers: layers.map(({ blob }) => ({ mediaType: `${MEDIA_TYPE}.layer.v1.tar+zstd`, ...blob })),
  };
}
