/**
 * The DaemonSet of an earlier release's node agents as that of this release. It keeps its name and its selector, so that the
 * orchestrator replaces its pods node by node, and whatever else runs in them, such as flannel. Pure.
 */
import { FORMER_NETWORK_CONFIG } from "../../config/former-network-config.ts";
import { identity } from "../../identity.ts";
import type { Fields } from "../../kube/objects.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import { isSame } from "../merge/canonical-json.ts";
import { type MergeConflict, mergeThreeWay, UNKNOWN_BASE } from "../merge/three-way.ts";
import { fieldsIn, itemsIn, named, textIn } from "../object-fields.ts";
import { podSpecOf, withPodSpec } from "../pod-template.ts";
import { isPublishedMount } from "../published/published-values.ts";
import { addedMembers, carryPlaces, type Workloads } from "./carried-places.ts";
import { imageConflicts, imageInPlaceOf } from "./image-place.ts";
import { lostEdits } from "./lost-edits.ts";

/** Init containers of earlier releases; those of the user have other names. */
const FORMER_INIT = ["upgrade-ipam", "install-cni", "flexvol-driver", "mount-bpffs", "ebpf-bootstrap"];
/** Volumes of earlier releases; those of the user have other names. */
const FORMER_VOLUMES = [
  "bpffs",
  "cni-bin-dir",
  "cni-log-dir",
  "cni-net-dir",
  "etcd-certs",
  "flexvol-driver-host",
  "host-local-net-dir",
  "lib-modules",
  "nodeproc",
  "policysync",
  "resolv",
  "sys-fs",
  "sysfs",
  `var-lib-${identity.product}`,
  `var-run-${identity.product}`,
  "xtables-lock",
];
const OURS = identity.nodeAgent;

export interface TranslatedWorkload {
  readonly object: KubeObject;
  readonly notes: readonly string[];
  readonly conflicts: readonly MergeConflict[];
}

export function translateDaemonSet(workloads: Workloads & { readonly release: KubeObject }): TranslatedWorkload {
  const { base, live, release } = workloads;
  const carried = carryPlaces(workloads, { kind: "DaemonSet", formerContainer: OURS, container: OURS });
  const selected = fieldsIn(live, "spec", "selector", "matchLabels");
  const strategy = mergeThreeWay(
    {
      base: base === UNKNOWN_BASE ? base : fieldsIn(base, "spec", "updateStrategy"),
      live: fieldsIn(live, "spec", "updateStrategy"),
      release: fieldsIn(release, "spec", "updateStrategy"),
    },
    workloads.winner,
  );
  const others = otherParts(workloads);
  const image = liveImage(live);
  const podSpec = withOthers(podSpecOf(carried.workload), others, (own) => ({
    ...own,
    image: imageInPlaceOf(image, textIn(own, "image") ?? "", workloads.winner),
    env: [...withDirectories(itemsIn(own, "env"), workloads), ...(own["name"] === OURS ? [] : formerConfig(live))],
  }));
  const template = fieldsIn(release, "spec", "template", "metadata");
  const object = withPodSpec(
    {
      ...release,
      metadata: {
        ...release.metadata,
        name: textIn(fieldsIn(live, "metadata"), "name") ?? release.metadata.name,
        ...withMembers("labels", { ...fieldsIn(live, "metadata", "labels"), ...release.metadata.labels }),
        ...withMembers("annotations", addedMembers(workloads, "metadata", "annotations")),
      },
      spec: {
        ...fieldsIn(release, "spec"),
        selector: fieldsIn(live, "spec", "selector"),
        updateStrategy: strategy.value,
        template: {
          metadata: {
            labels: {
              ...addedMembers(workloads, "spec", "template", "metadata", "labels"),
              ...fieldsIn(template, "labels"),
              ...selected,
            },
            annotations: {
              ...addedMembers(workloads, "spec", "template", "metadata", "annotations"),
              ...fieldsIn(template, "annotations"),
            },
          },
        },
      },
    },
    podSpec,
  );
  const place = (each: MergeConflict) => ({
    ...each,
    path: `spec.updateStrategy${each.path === "" ? "" : `.${each.path}`}`,
  });
  return {
    object,
    notes: [
      ...carried.kept.map((path) => `Kept: ${path}`),
      ...carried.replaced.map((path) => `A value that a release published becomes that of this release: ${path}`),
      ...others.notes,
      ...lostEdits(workloads),
      ...imageNotes(object, release),
    ],
    conflicts: [
      ...carried.conflicts,
      ...strategy.conflicts.map(place),
      ...imageConflicts(`spec.template.spec.containers[${OURS}].image`, image, liveImage(release) ?? ""),
    ],
  };
}

function imageNotes(object: Fields, release: Fields): readonly string[] {
  const image = liveImage(object);
  return image === liveImage(release) ? [] : [`The image ${image} has to be in your registry`];
}

export function liveImage(live: Fields): string | undefined {
  return textIn(named(itemsIn(podSpecOf(live), "containers"), OURS), "image");
}

interface OtherParts {
  readonly containers: readonly Fields[];
  readonly initContainers: readonly Fields[];
  /** Of our own container. */
  readonly mounts: readonly Fields[];
  readonly volumes: readonly Fields[];
  readonly notes: readonly string[];
}

/** Containers that are not ours, mounts that the user has added to ours, and the volumes of both. */
function otherParts({ base, isBaseApplied, live }: Workloads): OtherParts {
  const pod = podSpecOf(live);
  const containers = itemsIn(pod, "containers").filter(({ name }) => name !== OURS);
  const initContainers = itemsIn(pod, "initContainers").filter(({ name }) => !FORMER_INIT.includes(String(name)));
  const mountsOf = (workload: unknown) =>
    itemsIn(named(itemsIn(podSpecOf(workload), "containers"), OURS), "volumeMounts");
  const stock = base === UNKNOWN_BASE || isBaseApplied ? undefined : mountsOf(base);
  const isStock = (mount: Fields) =>
    stock === undefined
      ? FORMER_VOLUMES.includes(String(mount["name"]))
      : stock.some(({ mountPath }) => mountPath === mount["mountPath"]) || isPublishedMount(mount);
  const mounts = mountsOf(live).filter((each) => !isStock(each));
  const used = new Set(
    [...[...containers, ...initContainers].flatMap((each) => itemsIn(each, "volumeMounts")), ...mounts].map(
      ({ name }) => name,
    ),
  );
  const volumes = itemsIn(pod, "volumes").filter(({ name }) => used.has(name));
  const notes = [
    ...[...initContainers, ...containers].map(({ name }) => `Kept: container ${name}`),
    ...mounts.map(({ mountPath }) => `Kept: mount ${mountPath} of container ${OURS}`),
  ];
  return { containers, initContainers, mounts, volumes, notes };
}

function withOthers(pod: Fields, others: OtherParts, change: (own: Fields) => Fields): Fields {
  const own = (each: Fields) => {
    const changed = change(each);
    const isAgent = each["name"] === OURS && others.mounts.length > 0;
    return isAgent ? { ...changed, volumeMounts: [...itemsIn(changed, "volumeMounts"), ...others.mounts] } : changed;
  };
  const names = new Set(itemsIn(pod, "volumes").map(({ name }) => name));
  return {
    ...pod,
    initContainers: [...others.initContainers, ...itemsIn(pod, "initContainers").map(own)],
    containers: [...itemsIn(pod, "containers").map(own), ...others.containers],
    volumes: [...itemsIn(pod, "volumes"), ...others.volumes.filter(({ name }) => !names.has(name))],
  };
}

/** Directories of the host that the user has changed, and the address of the API server. */
function withDirectories(env: readonly Fields[], { live }: Workloads): readonly Fields[] {
  const pod = podSpecOf(live);
  const pathOf = (volume: string) => textIn(fieldsIn(named(itemsIn(pod, "volumes"), volume), "hostPath"), "path");
  const changes: Readonly<Record<string, string | undefined>> = {
    CNI_BIN_DIR: pathOf("cni-bin-dir"),
    CNI_CONF_DIR: pathOf("cni-net-dir"),
  };
  const given = itemsIn(named(itemsIn(pod, "containers"), OURS), "env").filter(({ name }) =>
    /^KUBERNETES_SERVICE_(HOST|PORT)$/.test(String(name)),
  );
  const changed = env.map((each) => {
    const value = changes[String(each["name"])];
    return value === undefined || isSame(each["value"], value) ? each : { ...each, value };
  });
  return [...changed, ...given.filter(({ name }) => named(env, String(name)) === undefined)];
}

/** A network config with another name would be read before that of this release: its installation sets it aside. */
function formerConfig(live: Fields): readonly Fields[] {
  const install = named(itemsIn(podSpecOf(live), "initContainers"), "install-cni");
  const value = textIn(named(itemsIn(install, "env"), "CNI_CONF_NAME"), "value");
  return value === undefined || value === `10-${identity.product}.conflist`
    ? []
    : [{ name: FORMER_NETWORK_CONFIG, value }];
}

function withMembers(name: string, members: Fields): Fields {
  return Object.keys(members).length === 0 ? {} : { [name]: members };
}
