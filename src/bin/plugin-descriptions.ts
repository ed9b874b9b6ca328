/** The description of each plugin: all that VERSION and `-v` need, without loading the plugin. */
import type { PluginDescription } from "../cni/plugin-description.ts";
import { CHAINING_VERSIONS, CNI_VERSIONS } from "../cni/version.ts";
import { identity } from "../identity.ts";
import { VERSION } from "../version.ts";
import type { PluginPart } from "./programs.ts";

export interface ProgramDescription extends PluginDescription {
  /** What `-v` prints. */
  readonly versionLine: string;
}

export function descriptionOf(part: PluginPart): ProgramDescription {
  const { product, title, ipamType } = identity;
  switch (part) {
    case "plugin":
      return description(`${title} CNI plugin ${VERSION}`, `${product} ${VERSION}`, CNI_VERSIONS);
    case "ipam":
      return description(`${title} IPAM plugin ${VERSION}`, `${ipamType} ${VERSION}`, CNI_VERSIONS);
    case "hostLocal":
      return description(
        `host-local IPAM plugin of ${title} ${VERSION}`,
        `host-local of ${product} ${VERSION}`,
        CNI_VERSIONS,
      );
    case "portmap":
      return description(
        `portmap plugin of ${title} ${VERSION}`,
        `portmap of ${product} ${VERSION}`,
        CHAINING_VERSIONS,
      );
    case "bandwidth":
      return description(
        `bandwidth plugin of ${title} ${VERSION}`,
        `bandwidth of ${product} ${VERSION}`,
        CHAINING_VERSIONS,
      );
  }
}

function description(
  about: string,
  versionLine: string,
  supportedVersions: PluginDescription["supportedVersions"],
): ProgramDescription {
  return { about, versionLine, supportedVersions };
}
