/** The release that this tool belongs to. Pure. */
import { operatorObjects } from "../../operator/manifests/operator.ts";
import { variantObjects } from "../../operator/manifests/variants.ts";
import type { TargetRelease } from "../../upgrade/target-release.ts";
import { defaultImage } from "../cluster/installed-image.ts";
import { chartFiles } from "../install/chart/files.ts";
import { crdObjects, operatorCrdObjects } from "../install/crds/definitions.ts";

export function targetRelease(version: string): TargetRelease {
  return {
    version,
    definitions: crdObjects(),
    operatorDefinitions: operatorCrdObjects(),
    operator: operatorObjects({ image: defaultImage(version) }),
    chart: () => Object.fromEntries(Object.entries(chartFiles()).map(([name, text]) => [name, text()])),
    manifest: (variant) => variantObjects(variant, version),
  };
}
