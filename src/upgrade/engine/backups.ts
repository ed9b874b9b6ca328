/**
 * Backups of an upgrade: Secrets in the cluster, compressed and in parts below the size limit of objects, and copies in local
 * files. A text is saved when its first part is there, which is written last; what was saved first stays.
 */
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";
import { UPGRADE_LABELS, UPGRADE_NAME, UPGRADE_NAMESPACE } from "./ledger.ts";
import { digestOf } from "./object-content.ts";
import type { Backups } from "./step.ts";

export interface BackupOptions {
  readonly objects: ClusterObjects;
  readonly run: string;
  /** Keeps a copy in a local file. */
  readonly copy: (name: string, text: string) => Promise<void>;
  /** Bytes of a Secret; the API accepts up to 1 MiB. */
  readonly partBytes?: number;
}

const PART_BYTES = 700_000;
const COLLECTION = `/api/v1/namespaces/${UPGRADE_NAMESPACE}/secrets`;
const RUN_LABEL = `${identity.apiGroup}/upgrade-run`;
const BACKUP_ANNOTATION = `${identity.apiGroup}/upgrade-backup`;
const KEY = "part";
/** As names of objects may be; not one that could be a part of another. */
const NAME = /^(?!.*\.part\d+$)[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/;

export function openBackups({ objects, run, copy, partBytes = PART_BYTES }: BackupOptions): Backups {
  const pathOf = (name: string, part: number) => `${COLLECTION}/${secretName(run, name, part)}`;
  const read = async (name: string): Promise<string | undefined> => {
    const first = await objects.read(pathOf(name, 0));
    if (first === undefined) return undefined;
    const { parts, digest } = descriptionIn(first, name);
    const pieces = [bytesIn(first)];
    for (let part = 1; part < parts; part += 1) pieces.push(bytesIn(await objects.read(pathOf(name, part))));
    return unpacked(pieces, digest, name);
  };
  return {
    read,
    async save(name, text) {
      if ((await objects.read(pathOf(name, 0))) !== undefined) return;
      await copy(name, text);
      const bytes = Bun.gzipSync(new TextEncoder().encode(text));
      const parts = Math.max(1, Math.ceil(bytes.length / partBytes));
      const description = { name, parts, digest: digestOf(text) };
      for (let part = parts - 1; part >= 0; part -= 1) {
        const piece = bytes.subarray(part * partBytes, (part + 1) * partBytes);
        await put(objects, secretOf(run, part, description, piece));
      }
    },
  };
}

interface Description {
  readonly name: string;
  readonly parts: number;
  readonly digest: string;
}

/** A part of an attempt that was interrupted is replaced: the whole was not saved then. */
async function put(objects: ClusterObjects, secret: Fields & { readonly metadata: { readonly name: string } }) {
  const path = `${COLLECTION}/${secret.metadata.name}`;
  if ((await objects.read(path)) === undefined) await objects.create(COLLECTION, secret);
  else await objects.replace(path, secret);
}

function secretOf(run: string, part: number, description: Description, piece: Uint8Array) {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name: secretName(run, description.name, part),
      namespace: UPGRADE_NAMESPACE,
      labels: { ...UPGRADE_LABELS, [RUN_LABEL]: run },
      annotations: { [BACKUP_ANNOTATION]: JSON.stringify(description) },
    },
    data: { [KEY]: Buffer.from(piece).toString("base64") },
  };
}

function secretName(run: string, name: string, part: number): string {
  if (!NAME.test(name)) throw new PluginError("internal", `Cannot name a backup ${quoted(name)}`);
  return `${UPGRADE_NAME}-backup-${run}-${name}${part === 0 ? "" : `.part${part}`}`;
}

function descriptionIn(secret: Fields, name: string): Description {
  const metadata = secret["metadata"];
  const annotations = isObject(metadata) ? metadata["annotations"] : undefined;
  const text = isObject(annotations) ? annotations[BACKUP_ANNOTATION] : undefined;
  if (typeof text !== "string") throw damaged(name);
  return JSON.parse(text) as Description;
}

function bytesIn(secret: Fields | undefined): Uint8Array {
  const data = secret?.["data"];
  const text = isObject(data) ? data[KEY] : undefined;
  return Buffer.from(typeof text === "string" ? text : "", "base64");
}

function unpacked(pieces: readonly Uint8Array[], digest: string, name: string): string {
  try {
    const text = new TextDecoder().decode(Bun.gunzipSync(Buffer.concat(pieces)));
    if (digestOf(text) === digest) return text;
  } catch {
    // Reported as any other damage.
  }
  throw damaged(name);
}

function damaged(name: string): PluginError {
  return new PluginError("record-malformed", `Cannot read the backup ${quoted(name)}: its Secrets are damaged`, {
    details: "put them back from the local copy",
  });
}
