/** The manifests of `deploy/`, each one file that `kubectl apply --server-side` takes. Generated from src/operator. */
import { formatYaml } from "../../src/admin/yaml.ts";
import { identity } from "../../src/identity.ts";
import type { KubeObject } from "../../src/operator/kube-object.ts";
import { operatorObjects } from "../../src/operator/manifests/operator.ts";
import { imageName } from "../../src/operator/render/image.ts";
import { VERSION } from "../../src/version.ts";

const IMAGE = imageName({ registry: identity.imageRegistry, path: "", prefix: "", pullSecrets: [] }, VERSION);

/** By the names of their files. */
export function manifestFiles(): Readonly<Record<string, () => string>> {
  return {
    "operator.yaml": () =>
      manifest(
        `The operator, which installs ${identity.title} as the resource Installation says. Apply operator-crds.yaml first.`,
        operatorObjects({ image: IMAGE }),
      ),
  };
}

function manifest(title: string, objects: readonly KubeObject[]): string {
  return `# ${title}\n# Generated from src/operator; see docs/kubernetes.md.\n${objects.map(formatYaml).join("---\n")}`;
}
