/** How the kubelet is to use the CSI driver that the node agents serve: only for volumes that a pod declares itself. Pure. */
import { identity } from "../../identity.ts";
import type { KubeObject } from "../kube-object.ts";
import type { RenderPlan } from "./plan.ts";

/** None if the Installation turns the driver off. */
export function csiDriver({ installation }: RenderPlan): readonly KubeObject[] {
  if (installation.kubeletDirectory === undefined) return [];
  return [
    {
      apiVersion: "storage.k8s.io/v1",
      kind: "CSIDriver",
      metadata: {
        name: identity.csiDriver,
        // The volume gives a pod nothing of the host: a cluster that checks volumes may let every namespace use it.
        labels: { "security.kubernetes.io/csi-ephemeral-volume-profile": "restricted" },
      },
      spec: {
        attachRequired: false,
        podInfoOnMount: true,
        volumeLifecycleModes: ["Ephemeral"],
        // The directory belongs to the node agent: the kubelet must not change its owner.
        fsGroupPolicy: "None",
      },
    },
  ];
}
