/** An authorizer that records what Envoy asks it, on a unix socket, and denies what it is told to. */
import { createServer, type ServerHttp2Stream } from "node:http2";
import { decodeMessage, encodeMessage, type Message } from "./protobuf.ts";

/** A request as Envoy describes it; a connection that is not HTTP has no method and path. */
export interface AskedRequest {
  readonly source: string;
  readonly principal: string;
  readonly destinationPort: number;
  readonly method: string;
  readonly path: string;
}

export interface RecordingAuthorizer extends AsyncDisposable {
  readonly asked: readonly AskedRequest[];
}

const DENIED = 7;

export async function startRecordingAuthorizer(
  socket: string,
  allows: (request: AskedRequest) => boolean,
): Promise<RecordingAuthorizer> {
  const asked: AskedRequest[] = [];
  const server = createServer();
  server.on("stream", (stream: ServerHttp2Stream) => {
    const parts: Uint8Array[] = [];
    stream.on("data", (part: Uint8Array) => parts.push(part));
    stream.on("end", () => {
      // Five bytes before the message: not compressed, and its length.
      const request = requestOf(decodeMessage(Buffer.concat(parts).subarray(5)));
      asked.push(request);
      respond(stream, allows(request) ? 0 : DENIED);
    });
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  return {
    asked,
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function requestOf(check: Message): AskedRequest {
  const attributes = check.message(1);
  const [source, destination] = [attributes.message(1), attributes.message(2)];
  const http = attributes.message(4).message(2);
  return {
    source: source.message(1).message(1).text(2),
    principal: source.text(4),
    destinationPort: destination.message(1).message(1).number(3),
    method: http.text(2),
    path: http.text(4),
  };
}

function respond(stream: ServerHttp2Stream, code: number): void {
  const message = encodeMessage([[1, encodeMessage([[1, code]])]]);
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.end(frame);
}
