/**
 * etcd through its JSON gateway with `fetch`, which starts fastest. If the
 * gateway is off or rejects the client's certificate, the failure says so and
 * the client switches to gRPC.
 */
import { type LineRules, linesOf } from "../../lines.ts";
import {
  failureOfConnection,
  failureOfResponse,
  gatewayOff,
  MOST_RESPONSE_BYTES,
  responseTooLarge,
} from "./failure.ts";
import {
  decodeError,
  decodeToken,
  decodeTransactionResponse,
  decodeWatchLine,
  encodeTransaction,
  encodeWatch,
} from "./gateway-json.ts";
import { failureOfTlsFiles } from "./tls-failure.ts";
import type { TlsFiles } from "./tls-files.ts";
import type {
  Call,
  Transaction,
  TransactionResponse,
  Transport,
  User,
  WatchRequest,
  WatchResponse,
} from "./transport.ts";

export class GatewayTransport implements Transport {
  constructor(private readonly tls: TlsFiles) {}

  async transact(call: Call, transaction: Transaction): Promise<TransactionResponse> {
    return decodeTransactionResponse(await this.ask(call, "/v3/kv/txn", encodeTransaction(transaction)));
  }

  async authenticate(call: Call, user: User): Promise<string> {
    return decodeToken(await this.ask(call, "/v3/auth/authenticate", JSON.stringify(user)));
  }

  async *watch(call: Call, request: WatchRequest): AsyncIterable<WatchResponse> {
    const response = await this.post(call, "/v3/watch", encodeWatch(request));
    for await (const line of watchLines(response)) {
      const answer = decodeWatchLine(line);
      if ("message" in answer) throw failureOfResponse(answer.code, answer.message);
      yield answer;
    }
  }

  close(): void {}

  private async ask(call: Call, path: string, body: string): Promise<string> {
    const response = await this.post(call, path, body);
    try {
      return await limitedText(response);
    } catch (error) {
      throw failureOfConnection(error);
    }
  }

  private async post(call: Call, path: string, body: string): Promise<Response> {
    const { response, complaint } = await this.send(call, path, body);
    if (response.ok) return response;
    if (response.status === 404) throw gatewayOff();
    const { code, message } = decodeError(response.status, complaint);
    throw failureOfResponse(code, message);
  }

  private async send(call: Call, path: string, body: string): Promise<{ response: Response; complaint: string }> {
    const { url, token, signal, heard } = call;
    try {
      const response = await fetch(url + path, {
        method: "POST",
        body,
        signal,
        redirect: "error",
        // Otherwise Bun closes a watch after minutes of silence.
        timeout: false,
        ...(token === undefined ? {} : { headers: { Authorization: token } }),
        ...(url.startsWith("https:") ? { tls: { ...this.tls, rejectUnauthorized: true } } : {}),
      });
      heard?.(response.headers.get("date"));
      return { response, complaint: response.ok ? "" : await response.text() };
    } catch (error) {
      throw (await failureOfTlsFiles(error, url, this.tls)) ?? failureOfConnection(error);
    }
  }
}

/** Small responses, which state their length, are read at once. */
async function limitedText(response: Response): Promise<string> {
  const stated = response.headers.get("content-length");
  if (stated !== null && Number(stated) <= MOST_RESPONSE_BYTES) return response.text();
  const pieces: Uint8Array[] = [];
  let count = 0;
  for await (const piece of response.body ?? []) {
    count += piece.length;
    if (count > MOST_RESPONSE_BYTES) throw responseTooLarge();
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

async function* watchLines(response: Response): AsyncIterable<string> {
  try {
    yield* linesOf(response.body ?? new Blob([]).stream(), LINE_RULES);
  } catch (error) {
    throw failureOfConnection(error);
  }
}

/** etcd ends each line: one without an end was cut off. */
const LINE_RULES: LineRules = {
  unended: "left out",
  most: { length: MOST_RESPONSE_BYTES, failure: responseTooLarge },
};
