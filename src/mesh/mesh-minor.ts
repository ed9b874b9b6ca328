/** The minor versions of the mesh that the sidecar can be inserted into. Pure. */
import { PluginError } from "../errors.ts";
import { quoted } from "../quote.ts";
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

/** Of `1.15`, `1.15.3`, `v1.15.3` or `1.15.3-distroless`. Throws if that minor has no template. */
export function meshMinor(version: string): MeshMinor {
  const minor = /^v?(\d+\.\d+)(?:\.\d+)*(?:[-+_].*)?$/.exec(version)?.[1];
  if (minor === undefined) {
    throw new PluginError(
      "field-unsupported",
      `Cannot use mesh version ${quoted(version)}: it is not like 1.15 or 1.15.3`,
    );
  }
  if (isMeshMinor(minor)) return minor;
  const there = `${MESH_MINORS.slice(0, -1).join(", ")} and ${MESH_MINORS.at(-1)}`;
  throw new PluginError(
    "field-unsupported",
    `Cannot use mesh version ${quoted(version)}: ${minor} has no template; there are ${there}`,
  );
}

function isMeshMinor(minor: string): minor is MeshMinor {
  return Object.hasOwn(ROWS, minor);
}
