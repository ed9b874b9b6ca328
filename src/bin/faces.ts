/** What each plugin says of itself. All that VERSION needs: no plugin is loaded for it. */
import type { PluginFace } from "../cni/face.ts";
import { CHAINING_VERSIONS, CNI_VERSIONS } from "../cni/version.ts";
import { identity } from "../identity.ts";
import { VERSION } from "../version.ts";
import type { PluginPart } from "./programs.ts";

export interface ProgramFace extends PluginFace {
  /** What `-v` prints. */
  readonly versionLine: string;
}

export function faceOf(part: PluginPart): ProgramFace {
  const { product, title, ipamType } = identity;
  switch (part) {
    case "plugin":
      return face(`${title} CNI plugin ${VERSION}`, `${product} ${VERSION}`, CNI_VERSIONS);
    case "ipam":
      return face(`${title} IPAM plugin ${VERSION}`, `${ipamType} ${VERSION}`, CNI_VERSIONS);
    case "hostLocal":
      return face(`host-local IPAM plugin of ${title} ${VERSION}`, `host-local of ${product} ${VERSION}`, CNI_VERSIONS);
    case "portmap":
      return face(`portmap plugin of ${title} ${VERSION}`, `portmap of ${product} ${VERSION}`, CHAINING_VERSIONS);
    case "bandwidth":
      return face(`bandwidth plugin of ${title} ${VERSION}`, `bandwidth of ${product} ${VERSION}`, CHAINING_VERSIONS);
  }
}

function face(about: string, versionLine: string, supportedVersions: PluginFace["supportedVersions"]): ProgramFace {
  return { about, versionLine, supportedVersions };
}
