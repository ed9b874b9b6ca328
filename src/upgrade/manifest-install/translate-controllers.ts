/** What the user has changed in the controllers of an earlier release, in those of this one, which have another name. Pure. */
import { identity } from "../../identity.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import { FORMER_CONTROLLERS } from "../former-names.ts";
import { itemsIn, named, textIn } from "../object-fields.ts";
import { podSpecOf, withPodSpec } from "../pod-template.ts";
import { carryPlaces, type Workloads } from "./carried-places.ts";
import { imageConflicts, imageInPlaceOf } from "./image-place.ts";
import type { TranslatedWorkload } from "./translate-daemon-set.ts";

const SECRETS_VOLUME = "etcd-secrets";

export interface ControllersPlace {
  /** The image of the live node agent. */
  readonly image: string | undefined;
  /** Directories in the pod where the settings say that etcd's certificates are. */
  readonly certificateDirectories: readonly string[];
}

export function translateControllers(
  workloads: Workloads & { readonly release: KubeObject },
  { image, certificateDirectories }: ControllersPlace,
): TranslatedWorkload {
  const carried = carryPlaces(workloads, {
    kind: "Deployment",
    formerContainer: FORMER_CONTROLLERS,
    container: identity.controllers,
  });
  const pod = podSpecOf(carried.workload);
  const live = textIn(named(itemsIn(podSpecOf(workloads.live), "containers"), FORMER_CONTROLLERS), "image") ?? image;
  const containers = itemsIn(pod, "containers").map((each) => {
    const mounts = itemsIn(each, "volumeMounts");
    const more = certificateDirectories.filter((path) => mounts.every(({ mountPath }) => mountPath !== path));
    return {
      ...each,
      image: imageInPlaceOf(live, textIn(each, "image") ?? "", workloads.winner),
      ...(mounts.length + more.length === 0
        ? {}
        : {
            volumeMounts: [
              ...mounts,
              ...more.map((mountPath) => ({ name: SECRETS_VOLUME, mountPath, readOnly: true })),
            ],
          }),
    };
  });
  const object = withPodSpec(workloads.release, { ...pod, containers });
  return {
    object,
    notes: [
      ...carried.kept.map((path) => `Kept: ${path} of the controllers`),
      ...carried.replaced.map(
        (path) => `A value that a release published becomes that of this release: ${path} of the controllers`,
      ),
    ],
    conflicts: [
      ...carried.conflicts,
      ...imageConflicts(
        `spec.template.spec.containers[${FORMER_CONTROLLERS}].image`,
        live,
        ownImage(workloads.release),
      ),
    ],
  };
}

function ownImage(release: KubeObject): string {
  return textIn(named(itemsIn(podSpecOf(release), "containers"), identity.controllers), "image") ?? "";
}
