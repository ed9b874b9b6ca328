/** The minor versions of the mesh whose form of the injector is known. The earliest first. Pure. */
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";
import type { FilterForm } from "./envoy-filter.ts";

interface MinorRow {
  /** `one`: the text `template`. `several`: the texts in `templates`, merged into the pod one after the other. */
  readonly templates: "one" | "several";
  /** The values of the mesh can name the templates that are used by default. */
  readonly hasDefaultTemplatesValue: boolean;
  readonly filter: FilterForm;
  /** An expression of the template: the trust domain of the mesh. */
  readonly trustDomain: string;
}

const FROM_VALUES = "valueOrDefault .Values.global.trustDomain `cluster.local`";
const FROM_MESH_CONFIG = "valueOrDefault .MeshConfig.TrustDomain `cluster.local`";

const ROWS = {
  "1.6": { templates: "one", hasDefaultTemplatesValue: false, filter: "v2", trustDomain: FROM_VALUES },
  "1.7": { templates: "one", hasDefaultTemplatesValue: false, filter: "v3-first", trustDomain: FROM_VALUES },
  "1.9": { templates: "several", hasDefaultTemplatesValue: false, filter: "v3", trustDomain: FROM_MESH_CONFIG },
  "1.10": { templates: "several", hasDefaultTemplatesValue: true, filter: "v3", trustDomain: FROM_MESH_CONFIG },
  "1.15": { templates: "several", hasDefaultTemplatesValue: true, filter: "v3", trustDomain: FROM_MESH_CONFIG },
} as const satisfies Readonly<Record<string, MinorRow>>;

export type MeshMinor = keyof typeof ROWS;

export const MESH_MINORS = Object.keys(ROWS).filter(isMeshMinor);

export function rowOf(minor: MeshMinor): MinorRow {
  return ROWS[minor];
}

/**
 * The minor whose form is expected of `1.15`, `1.15.3`, `v1.15.3` or `1.15.3-distroless`: its own, or the nearest earlier one that
 * is known, since the form changes rarely. What inserts the sidecar refuses an injector of another form. Throws if the version
 * is earlier than all of them.
 */
export function meshMinor(version: string): MeshMinor {
  const own = minorIn(version);
  if (own === undefined) {
    throw new PluginError(
      "field-unsupported",
      `Cannot use mesh version ${quoted(version)}: it is not like 1.15 or 1.15.3`,
    );
  }
  const nearest = MESH_MINORS.findLast((minor) => !isBefore(own, minor));
  if (nearest !== undefined) return nearest;
  throw new PluginError(
    "field-unsupported",
    `Cannot use mesh version ${quoted(version)}: ${own} has no template; the first one is for ${MESH_MINORS[0]}`,
  );
}

/** What to say of a version whose own minor is not known; `undefined` if it is. */
export function nearestMinorText(version: string): string | undefined {
  const minor = meshMinor(version);
  return minorIn(version) === minor
    ? undefined
    : `mesh ${version} has no template of its own: that of ${minor} is used`;
}

function minorIn(version: string): string | undefined {
  return /^v?(\d+\.\d+)(?:\.\d+)*(?:[-+_].*)?$/.exec(version)?.[1];
}

function isBefore(one: string, other: string): boolean {
  const [[major = 0, minor = 0], [otherMajor = 0, otherMinor = 0]] = [one, other].map((text) =>
    text.split(".").map(Number),
  ) as [number[], number[]];
  return major === otherMajor ? minor < otherMinor : major < otherMajor;
}

function isMeshMinor(minor: string): minor is MeshMinor {
  return Object.hasOwn(ROWS, minor);
}
