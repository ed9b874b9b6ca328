/**
 * Manifests of earlier releases as they were published: what an installation is compared with, to find out what its user has
 * changed. They have what an upgrade needs, without definitions.
 */
import { identity } from "../../identity.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import type { ManifestNetwork } from "../engine/facts.ts";

export interface StockVariant {
  readonly datastore: "kubernetes" | "etcd";
  readonly network: ManifestNetwork;
}

/** A published manifest that an installation is compared with. */
export interface ComparedManifest {
  /** `v3.26`: of the manifest. */
  readonly minor: string;
  /** Whether it is that of the installation itself. */
  readonly isOwn: boolean;
  readonly objects: readonly KubeObject[];
}

/**
 * The manifest of the installation's own minor release; if this tool does not have it, that of the next one that it has, or of
 * the last. What differs between them at the places that are compared is in `published-values.ts`. `undefined`: there is none
 * of this variant.
 */
export async function comparedManifest(version: string, variant: StockVariant): Promise<ComparedManifest | undefined> {
  const own = minorOf(version);
  const known = Object.keys(FILES);
  const minor = known.find((each) => minorNumber(each) >= minorNumber(own)) ?? known.at(-1) ?? "";
  const objects = await stockManifest(minor, variant);
  return objects && { minor, isOwn: minor === own, objects };
}

/** `undefined` if this tool does not have it. `version`: of the installation, with any patch number. */
export async function stockManifest(
  version: string,
  { datastore, network }: StockVariant,
): Promise<readonly KubeObject[] | undefined> {
  const name = datastore === "etcd" ? `etcd-${network}` : network;
  const load = FILES[minorOf(version)]?.[name];
  if (load === undefined) return undefined;
  const { default: text } = await load();
  return objectsIn(text);
}

function minorOf(version: string): string {
  return /^v\d+\.\d+/.exec(version)?.[0] ?? "";
}

/** All are of v3. */
export function minorNumber(minor: string): number {
  return Number(minor.split(".")[1]);
}

function objectsIn(template: string): readonly KubeObject[] {
  const documents: unknown = Bun.YAML.parse(withProductNames(template));
  return documents as readonly KubeObject[];
}

/** The names of the product are filled in. */
export function withProductNames(template: string): string {
  return template
    .replaceAll("(product)", identity.product)
    .replaceAll("(PREFIX)", identity.environmentPrefix)
    .replaceAll("(apiGroup)", identity.apiGroup);
}

type Load = () => Promise<{ readonly default: string }>;

/** By minor release, the earliest first. Loaded only when one of them is needed. */
const FILES: Readonly<Record<string, Readonly<Record<string, Load>>>> = {
  "v3.15": {
    own: () => import("../../../data/published-manifests/v3.15/own.yaml", { with: { type: "text" } }),
    other: () => import("../../../data/published-manifests/v3.15/other.yaml", { with: { type: "text" } }),
    fabric: () => import("../../../data/published-manifests/v3.15/fabric.yaml", { with: { type: "text" } }),
    "etcd-own": () => import("../../../data/published-manifests/v3.15/etcd-own.yaml", { with: { type: "text" } }),
    "etcd-other": () => import("../../../data/published-manifests/v3.15/etcd-other.yaml", { with: { type: "text" } }),
  },
  "v3.22": {
    own: () => import("../../../data/published-manifests/v3.22/own.yaml", { with: { type: "text" } }),
    other: () => import("../../../data/published-manifests/v3.22/other.yaml", { with: { type: "text" } }),
    fabric: () => import("../../../data/published-manifests/v3.22/fabric.yaml", { with: { type: "text" } }),
    "etcd-own": () => import("../../../data/published-manifests/v3.22/etcd-own.yaml", { with: { type: "text" } }),
    "etcd-other": () => import("../../../data/published-manifests/v3.22/etcd-other.yaml", { with: { type: "text" } }),
  },
  "v3.26": {
    own: () => import("../../../data/published-manifests/v3.26/own.yaml", { with: { type: "text" } }),
    other: () => import("../../../data/published-manifests/v3.26/other.yaml", { with: { type: "text" } }),
    fabric: () => import("../../../data/published-manifests/v3.26/fabric.yaml", { with: { type: "text" } }),
    "etcd-own": () => import("../../../data/published-manifests/v3.26/etcd-own.yaml", { with: { type: "text" } }),
    "etcd-other": () => import("../../../data/published-manifests/v3.26/etcd-other.yaml", { with: { type: "text" } }),
  },
  "v3.28": {
    own: () => import("../../../data/published-manifests/v3.28/own.yaml", { with: { type: "text" } }),
    other: () => import("../../../data/published-manifests/v3.28/other.yaml", { with: { type: "text" } }),
    fabric: () => import("../../../data/published-manifests/v3.28/fabric.yaml", { with: { type: "text" } }),
    "etcd-own": () => import("../../../data/published-manifests/v3.28/etcd-own.yaml", { with: { type: "text" } }),
    "etcd-other": () => import("../../../data/published-manifests/v3.28/etcd-other.yaml", { with: { type: "text" } }),
  },
};
