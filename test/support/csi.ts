/** A client of the CSI driver like the kubelet, with raw frames of gRPC, and its requests. */
import { connect } from "node:http2";
import { connect as connectSocket } from "node:net";
import { GrpcError } from "../../src/grpc/status.ts";
import type { KubeObject } from "../../src/release/kube-object.ts";
import { renderInstallation } from "../../src/release/workloads/render-installation.ts";
import { EXAMPLES } from "./installations.ts";
import { decodeMessage, encodeMap, encodeMessage, type Field, type Message } from "./protobuf.ts";

export interface Reply {
  /** As gRPC numbers it; 0 if the call succeeded. */
  readonly status: number;
  readonly error: string;
  readonly message: Message;
}

/** One call, on a connection of its own. */
export async function callGrpc(
  socket: string,
  method: string,
  request: readonly Field[] | Uint8Array = [],
): Promise<Reply> {
  const session = connect("http://localhost", { createConnection: () => connectSocket(socket) });
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  session.on("error", reject);
  const headers = { ":method": "POST", ":path": method, "content-type": "application/grpc", te: "trailers" };
  const stream = session.request(headers);
  const fields = new Map<string, string>();
  const keep = (received: object) => {
    for (const [name, value] of Object.entries(received)) fields.set(name, String(value));
  };
  const pieces: Uint8Array[] = [];
  stream.on("response", keep);
  stream.on("trailers", keep);
  stream.on("data", (piece: Uint8Array) => pieces.push(piece));
  stream.on("error", reject);
  stream.on("end", () =>
    resolve({
      status: Number(fields.get("grpc-status")),
      error: decodeURIComponent(fields.get("grpc-message") ?? ""),
      message: decodeMessage(Buffer.concat(pieces).subarray(5)),
    }),
  );
  const body = request instanceof Uint8Array ? request : encodeMessage(request);
  const frame = new Uint8Array(5 + body.length);
  new DataView(frame.buffer).setUint32(1, body.length);
  frame.set(body, 5);
  stream.end(frame);
  return promise.finally(() => session.close());
}

export interface PublishInput {
  readonly id?: string;
  readonly target?: string;
  readonly uid?: string;
  readonly attributes?: Readonly<Record<string, string>>;
  /** Fields besides, or others of the same numbers. */
  readonly more?: readonly Field[];
}

const KUBELET = "csi.storage.k8s.io/";

/** What the kubelet says about a pod "red/web". */
export function podAttributes(uid: string): Readonly<Record<string, string>> {
  return {
    [`${KUBELET}ephemeral`]: "true",
    [`${KUBELET}pod.name`]: "web",
    [`${KUBELET}pod.namespace`]: "red",
    [`${KUBELET}pod.uid`]: uid,
    [`${KUBELET}serviceAccount.name`]: "default",
  };
}

/** `NodePublishVolumeRequest` of an inline volume. */
export function publishRequest(input: PublishInput = {}): readonly Field[] {
  const { id = "csi-1", target = "/kubelet/mount", uid = "uid-1", attributes = {}, more = [] } = input;
  return [[1, id], [4, target], [6, 1], ...encodeMap(8, { ...podAttributes(uid), ...attributes }), ...more];
}

export function unpublishRequest(id: string, target: string): readonly Field[] {
  return [
    [1, id],
    [2, target],
  ];
}

/** What a call is refused with; fails if it is not. */
export function refusalOf(action: () => unknown): GrpcError {
  try {
    action();
  } catch (failure) {
    if (failure instanceof GrpcError) return failure;
    throw failure;
  }
  throw new Error("Nothing was thrown");
}

/** The CSIDriver as an installation with defaults has it. */
export function csiDriverObject(): KubeObject {
  const { installation, facts } = EXAMPLES["default"] ?? {};
  if (installation === undefined || facts === undefined) throw new Error("no default installation");
  const found = renderInstallation(installation, facts).objects.find(({ kind }) => kind === "CSIDriver");
  if (found === undefined) throw new Error("an installation with defaults has no CSIDriver");
  return found;
}
