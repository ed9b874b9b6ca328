/** What a pod asks for with the inline volume of a sidecar, from the call of the kubelet. Pure. */
import type { Fields } from "../../grpc/protobuf.ts";
import { GrpcError } from "../../grpc/status.ts";
import { identity } from "../../identity.ts";
import { quoted } from "../../quote.ts";

export interface VolumeRequest {
  /** The kubelet's name for the volume. */
  readonly id: string;
  /** Of the pod. */
  readonly uid: string;
  readonly namespace: string;
  readonly pod: string;
  /** The user that the sidecar runs as. */
  readonly user: number;
  /** Where the kubelet wants the volume. */
  readonly target: string;
}

const DEFAULT_USER = "65532";
/** The kernel uses the number above it for "no user". */
const MAXIMUM_USER = 4_294_967_294;

/** Of attributes that the kubelet adds. */
const KUBELET = "csi.storage.k8s.io/";
const EPHEMERAL = `${KUBELET}ephemeral`;
const USER = "user";

/** They become names of files. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** Fields of `NodePublishVolumeRequest`. */
const FIELD = { id: 1, target: 4, capability: 5, readOnly: 6, secrets: 7, attributes: 8 } as const;
/** Of `VolumeCapability`. */
const BLOCK = 1;

export function volumeRequest(fields: Fields): VolumeRequest {
  const attributes = new Map(fields.all(FIELD.attributes).map((entry) => [entry.text(1), entry.text(2)]));
  if (attributes.get(EPHEMERAL) !== "true") {
    throw refused(`${identity.csiDriver} has no persistent volumes; declare it in the pod, as spec.volumes[].csi`);
  }
  if (fields.one(FIELD.capability)?.one(BLOCK) !== undefined) {
    throw refused("the volume is a directory, not a block device; use volumeMounts, not volumeDevices");
  }
  // Otherwise container runtimes mount it into the container read-write, whatever the mount on the host is.
  if (!fields.flag(FIELD.readOnly))
    throw refused("the volume is read-only; set readOnly of spec.volumes[].csi to true");
  if (fields.all(FIELD.secrets).length > 0) throw refused("nodePublishSecretRef is not supported; remove it");
  const unknown = [...attributes.keys()].filter((name) => !name.startsWith(KUBELET) && name !== USER);
  if (unknown.length > 0) {
    const names = unknown.map((name) => quoted(`volumeAttributes.${name}`)).join(", ");
    throw refused(`unknown attribute ${names}; the only attribute is ${quoted(USER)}`);
  }
  return {
    id: volumeId(fields, FIELD.id),
    target: targetPath(fields, FIELD.target),
    user: userIn(attributes.get(USER) ?? DEFAULT_USER),
    ...podIn(attributes),
  };
}

/** The same fields of the call that takes the volume away. */
export function volumeToRemove(fields: Fields): Pick<VolumeRequest, "id" | "target"> {
  return { id: volumeId(fields, 1), target: targetPath(fields, 2) };
}

function volumeId(fields: Fields, field: number): string {
  const id = fields.text(field);
  if (!NAME.test(id)) throw refused(`volume_id ${quoted(id)} is not the ID of a volume`);
  return id;
}

function targetPath(fields: Fields, field: number): string {
  const target = fields.text(field);
  if (target === "") throw refused("target_path is missing");
  return target;
}

function podIn(attributes: ReadonlyMap<string, string>): Pick<VolumeRequest, "uid" | "namespace" | "pod"> {
  const [uid = "", namespace = "", pod = ""] = ["uid", "namespace", "name"].map((name) =>
    attributes.get(`${KUBELET}pod.${name}`),
  );
  if (uid === "" || namespace === "" || pod === "") {
    const remedy = `set podInfoOnMount of the CSIDriver ${quoted(identity.csiDriver)} to true`;
    throw new GrpcError("failed-precondition", `the kubelet does not say which pod it is; ${remedy}`);
  }
  if (!NAME.test(uid)) throw refused(`${KUBELET}pod.uid ${quoted(uid)} is not the UID of a pod`);
  return { uid, namespace, pod };
}

function userIn(text: string): number {
  const user = /^(0|[1-9][0-9]{0,9})$/.test(text) ? Number(text) : Number.NaN;
  if (user <= MAXIMUM_USER) return user;
  throw refused(
    `volumeAttributes.${USER} ${quoted(text)} is not the number of a user; ` +
      `use runAsUser of the sidecar, a whole number from 0 to ${MAXIMUM_USER}`,
  );
}

function refused(message: string): GrpcError {
  return new GrpcError("invalid-argument", message);
}
