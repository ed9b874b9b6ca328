/**
 * A CRI v1 client like the kubelet's: gRPC over HTTP/2 on containerd's socket. Only
 * the calls that create and remove a pod's sandbox.
 */
import { type ClientHttp2Session, connect } from "node:http2";
import { connect as connectSocket } from "node:net";
import { decodeMessage, encodeMap, encodeMessage, type Field, type Message } from "./protobuf.ts";

export interface PortMapping {
  readonly protocol: "TCP" | "UDP" | "SCTP";
  readonly containerPort: number;
  readonly hostPort: number;
  readonly hostIp?: string;
}

export interface PodSandbox {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly cgroupParent: string;
  readonly portMappings?: readonly PortMapping[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface PodSandboxStatus {
  readonly ready: boolean;
  readonly addresses: readonly string[];
}

export interface Cri extends Disposable {
  runPodSandbox(sandbox: PodSandbox): Promise<string>;
  podSandboxStatus(id: string): Promise<PodSandboxStatus>;
  stopPodSandbox(id: string): Promise<void>;
  removePodSandbox(id: string): Promise<void>;
  /** The message of the network condition; undefined if the runtime reports NetworkReady. */
  networkTrouble(): Promise<string | undefined>;
}

const PROTOCOLS = { TCP: 0, UDP: 1, SCTP: 2 } as const;

export function connectCri(socket: string): Cri {
  const session = connect("http://localhost", { createConnection: () => connectSocket(socket) });
  session.on("error", () => {}); // Every request reports it itself.
  const call = (method: string, fields: readonly Field[]) => callMethod(session, method, fields);

  return {
    async runPodSandbox(sandbox) {
      const answer = await call("RunPodSandbox", [[1, sandboxConfig(sandbox)]]);
      return answer.text(1);
    },
    async podSandboxStatus(id) {
      const status = (await call("PodSandboxStatus", [[1, id]])).message(1);
      const network = status.message(5);
      const addresses = [network.text(1), ...network.messages(2).map((further) => further.text(1))];
      return { ready: status.number(3) === 0, addresses: addresses.filter((address) => address !== "") };
    },
    async stopPodSandbox(id) {
      await call("StopPodSandbox", [[1, id]]);
    },
    async removePodSandbox(id) {
      await call("RemovePodSandbox", [[1, id]]);
    },
    async networkTrouble() {
      const conditions = (await call("Status", [])).message(1).messages(1);
      const network = conditions.find((condition) => condition.text(1) === "NetworkReady");
      return network?.number(2) === 1 ? undefined : (network?.text(4) ?? "the runtime names no such condition");
    },
    [Symbol.dispose]: () => session.destroy(),
  };
}

function sandboxConfig(sandbox: PodSandbox): Uint8Array {
  const { name, uid, namespace, cgroupParent } = sandbox;
  const metadata = encodeMessage([
    [1, name],
    [2, uid],
    [3, namespace],
  ]);
  const ports = (sandbox.portMappings ?? []).map((mapping): Field => {
    const { protocol, containerPort, hostPort, hostIp = "" } = mapping;
    return [
      5,
      encodeMessage([
        [1, PROTOCOLS[protocol]],
        [2, containerPort],
        [3, hostPort],
        [4, hostIp],
      ]),
    ];
  });
  return encodeMessage([
    [1, metadata],
    [2, name],
    ...ports,
    ...encodeMap(6, sandbox.labels ?? {}),
    ...encodeMap(7, sandbox.annotations ?? {}),
    [8, encodeMessage([[1, cgroupParent]])],
  ]);
}

/** One unary call. gRPC frames a message with a zero byte and its length in four. */
function callMethod(session: ClientHttp2Session, method: string, fields: readonly Field[]): Promise<Message> {
  const message = encodeMessage(fields);
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);

  return new Promise((resolve, reject) => {
    const request = session.request({
      ":method": "POST",
      ":path": `/runtime.v1.RuntimeService/${method}`,
      "content-type": "application/grpc",
      te: "trailers",
    });
    const received: Buffer[] = [];
    let status: Record<string, unknown> = {};
    request.on("response", (headers) => {
      status = { ...headers };
    });
    request.on("trailers", (trailers) => {
      status = { ...status, ...trailers };
    });
    request.on("data", (chunk: Buffer) => received.push(chunk));
    request.on("error", reject);
    request.on("end", () => {
      if (status["grpc-status"] === "0") resolve(decodeMessage(Buffer.concat(received).subarray(5)));
      else reject(new Error(`${method}: ${decodeURIComponent(String(status["grpc-message"] ?? "no response"))}`));
    });
    const limit = setTimeout(() => request.destroy(new Error(`${method}: no response in 30 s`)), 30_000);
    request.on("close", () => clearTimeout(limit));
    request.end(frame);
  });
}
