/**
 * One failed attempt at one endpoint: the stage, whether the request may have
 * taken effect anyway, and whether waiting can help.
 */

export type Stage = "resolve" | "connect" | "TLS" | "authenticate" | "request";

interface Diagnosis {
  readonly stage: Stage;
  /** `unknown`: the request may have reached etcd and may still take effect. */
  readonly effect: "none" | "unknown";
  /** What resolves it: a short wait (a restart), a longer wait (an election), a new token, gRPC, or the operator. */
  readonly cure: "moment" | "wait" | "new token" | "grpc" | "repair";
  /** What the operator should check. */
  readonly advice: string;
  /** Only this request is too large: others may succeed. */
  readonly isTooLarge?: true;
}

export class EtcdFailure extends Error {
  override readonly name = "EtcdFailure";

  constructor(
    readonly diagnosis: Diagnosis,
    message: string,
    cause?: unknown,
  ) {
    super(message, { cause });
  }
}

const REFUSED = {
  stage: "connect",
  effect: "none",
  cure: "moment",
  advice: "check that etcd is running there and that the address and port are correct",
} as const satisfies Diagnosis;

const UNRESOLVED = {
  stage: "resolve",
  effect: "none",
  cure: "moment",
  advice: "check the host name and the system's resolver",
} as const satisfies Diagnosis;

const UNTRUSTED = {
  stage: "TLS",
  effect: "none",
  cure: "repair",
  advice:
    "check that the CA file contains the root that signed the server's certificate, that the certificate is valid for this host, and that the server trusts the client's certificate and key",
} as const satisfies Diagnosis;

const SILENT = {
  stage: "request",
  effect: "unknown",
  cure: "wait",
  advice:
    "check that the member is running and reaches a majority of the others (without a leader etcd does not respond), that no firewall blocks its port, and that it uses the scheme of the address (http or https)",
} as const satisfies Diagnosis;

const NOT_BEGUN = {
  stage: "request",
  effect: "none",
  cure: "moment",
  advice: "etcd closes its connections when it is restarted or overloaded: check its log",
} as const satisfies Diagnosis;

const WITHOUT_HTTP2 = {
  stage: "TLS",
  effect: "none",
  cure: "repair",
  advice: "check that the address is that of etcd itself, and that no proxy in between speaks only HTTP/1",
} as const satisfies Diagnosis;

const BY_ERROR_CODE: readonly (readonly [RegExp, Diagnosis])[] = [
  [/^(ECONNREFUSED|ConnectionRefused|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|FailedToOpenSocket)$/, REFUSED],
  [/^(ENOTFOUND|EAI_AGAIN|ESERVFAIL|ENODATA|ETIMEOUT|DNS_)/, UNRESOLVED],
  [
    /^(EPROTO|CERT_|ERR_TLS|ERR_SSL|ERR_BORINGSSL|UNABLE_TO|SELF_SIGNED|DEPTH_ZERO|HOSTNAME_MISMATCH|INVALID_CA)/,
    UNTRUSTED,
  ],
];

/** Classifies an error of a socket, of TLS or of a time limit. */
export function failureOfConnection(error: unknown): EtcdFailure {
  if (error instanceof EtcdFailure) return error;
  if (!(error instanceof Error)) return new EtcdFailure(SILENT, String(error), error);
  if (error.name === "TimeoutError" || error.name === "AbortError") {
    return new EtcdFailure(SILENT, "no response within the time limit", error);
  }
  const code = "code" in error ? String(error.code) : "";
  const [, diagnosis = SILENT] = BY_ERROR_CODE.find(([pattern]) => pattern.test(code)) ?? [];
  return new EtcdFailure(
    diagnosis,
    code === "" ? error.message : `${code}: ${plainMessage(error.message, code)}`,
    error,
  );
}

/** The server has certainly not started to process the request. */
export function notBegun(error: unknown): EtcdFailure {
  return new EtcdFailure(NOT_BEGUN, messageOf(error), error);
}

/** Once the server has sent its settings, an error that otherwise means "never connected" proves nothing about the request. */
export function brokenConnection(error: unknown): EtcdFailure {
  return new EtcdFailure(SILENT, messageOf(error), error);
}

export function withoutHttp2(): EtcdFailure {
  return new EtcdFailure(WITHOUT_HTTP2, "the server does not support HTTP/2");
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function plainMessage(message: string, code: string): string {
  const [firstSentence = ""] = message.replace(`${code}: `, "").split(/\. (?=For more|Is the)/);
  return firstSentence;
}

interface ServerError {
  readonly words: RegExp;
  readonly diagnosis: Diagnosis;
}

/** Errors that etcd returns, by their text; the first match counts. */
const SERVER_ERRORS: readonly ServerError[] = [
  {
    words: /CommonName of client sending a request against gateway/,
    diagnosis: {
      stage: "request",
      effect: "none",
      cure: "grpc",
      advice: "the gateway rejects client certificates with a common name",
    },
  },
  {
    // The gateway connects to its own server with the server's certificate; if the server does not accept that, the gateway returns this.
    words: /^connection closed$|all SubConns are in TransientFailure|authentication handshake failed/,
    diagnosis: {
      stage: "request",
      effect: "none",
      cure: "grpc",
      advice: "the gateway is rejected by its own server: add the CA of etcd's certificate to its trusted CA file",
    },
  },
  {
    words: /invalid auth token|revision in header is old/,
    diagnosis: {
      stage: "authenticate",
      effect: "none",
      cure: "new token",
      advice: "check that the members' clocks and token settings agree",
    },
  },
  {
    words: /authentication failed|user name is empty|user name not found/,
    diagnosis: {
      stage: "authenticate",
      effect: "none",
      cure: "repair",
      advice:
        "check the user and password in the endpoint's address (user:password@host), or the common name of the client's certificate",
    },
  },
  {
    words: /permission denied/,
    diagnosis: {
      stage: "request",
      effect: "none",
      cure: "repair",
      advice: "grant the user's role read and write permission on the product's keys",
    },
  },
  {
    words: /database space exceeded|NOSPACE/,
    diagnosis: {
      stage: "request",
      effect: "none",
      cure: "repair",
      advice:
        "etcd's quota is used up (alarm NOSPACE): compact and defragment it, or raise --quota-backend-bytes, then disarm the alarm (etcdctl alarm disarm)",
    },
  },
  {
    words: /request is too large|message larger than max/,
    diagnosis: {
      stage: "request",
      effect: "none",
      cure: "repair",
      advice: "etcd's limit for a request is 1.5 MiB unless --max-request-bytes is set",
      isTooLarge: true,
    },
  },
  {
    words: /no leader|leader changed|not leader|leadership/,
    diagnosis: {
      stage: "request",
      effect: "unknown",
      cure: "wait",
      advice:
        "the cluster has no leader: check that more than half of its members are running and can reach each other",
    },
  },
  {
    words:
      /request timed out|context deadline exceeded|transport is closing|too many requests|server stopped|not capable/,
    diagnosis: {
      ...SILENT,
      advice: "etcd is overloaded or has no majority: check the health and disks of its members",
    },
  },
  {
    words: /HTTP request to an HTTPS server/,
    diagnosis: {
      stage: "TLS",
      effect: "none",
      cure: "repair",
      advice: "the endpoint requires TLS: use https:// in its address",
    },
  },
];

/** gRPC status codes that are worth a retry: cancelled, unknown, deadline exceeded, aborted, unavailable. */
const TRANSIENT_CODES = new Set([1, 2, 4, 10, 14]);

/** Classifies an error response of etcd. */
export function failureOfResponse(code: number, message: string): EtcdFailure {
  const known = SERVER_ERRORS.find(({ words }) => words.test(message));
  if (known) return new EtcdFailure(known.diagnosis, message);
  const diagnosis: Diagnosis = TRANSIENT_CODES.has(code)
    ? SILENT
    : { stage: "request", effect: "none", cure: "repair", advice: "check the version and settings of etcd" };
  return new EtcdFailure(diagnosis, `${message} (code ${code})`);
}

/** A page of 128 records of etcd's usual size limit, in base64, and some more: etcd never sends more. */
export const MOST_RESPONSE_BYTES = 300 * 1024 * 1024;

export function responseTooLarge(): EtcdFailure {
  const advice = "check that the address is that of etcd itself";
  const diagnosis: Diagnosis = { stage: "request", effect: "unknown", cure: "repair", advice };
  return new EtcdFailure(diagnosis, `the response is longer than ${MOST_RESPONSE_BYTES} bytes`);
}

/** The gateway is disabled; gRPC may be available on the same port. */
export function gatewayOff(): EtcdFailure {
  return failureOfGateway("the JSON gateway is off");
}

function failureOfGateway(message: string): EtcdFailure {
  return new EtcdFailure({ stage: "request", effect: "none", cure: "grpc", advice: "is this etcd?" }, message);
}

/** The server speaks HTTP/2, but not etcd's gRPC: probably a proxy, which may still forward requests to the gateway. */
export function grpcOff(reason: string, effect: Diagnosis["effect"]): EtcdFailure {
  const advice = "check that a proxy in front of etcd forwards gRPC";
  const cure = effect === "none" ? "moment" : "wait";
  return new EtcdFailure({ stage: "request", effect, cure, advice }, `${GRPC_OFF} (${reason})`);
}

const GRPC_OFF = "the response is not etcd's gRPC";

export function isGrpcOff({ message }: EtcdFailure): boolean {
  return message.startsWith(GRPC_OFF);
}

/** Nothing was received within the time limit. */
export function isSilence({ cause }: EtcdFailure): boolean {
  return cause instanceof Error && (cause.name === "TimeoutError" || cause.name === "AbortError");
}

export function isAuthenticationOff(error: unknown): boolean {
  return error instanceof EtcdFailure && /authentication is not enabled/.test(error.message);
}

export function isCompacted(error: unknown): boolean {
  return error instanceof EtcdFailure && /required revision has been compacted/.test(error.message);
}

export function isFuture(error: unknown): boolean {
  return error instanceof EtcdFailure && /required revision is a future revision/.test(error.message);
}
