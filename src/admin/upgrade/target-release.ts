/** The release that this tool belongs to. Pure. */

import { chartFiles } from "../../release/chart/files.ts";
import { crdObjects, operatorCrdObjects } from "../../release/crds/released-crds.ts";
import { operatorObjects } from "../../release/manifests/operator.ts";
import { variantObjects } from "../../release/manifests/variants.ts";
import { defaultImage } from "../../release/workloads/image.ts";
import type { TargetRelease } from "../../upgrade/engine/target-release.ts";

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
