/**
 * Why a request to the orchestrator's API failed: the stage, whether it may have
 * taken effect anyway, whether a retry can help, and what to check.
 */
import { type ErrorKind, PluginError } from "../errors.ts";
import { redact } from "../redaction.ts";

type Stage = "kubeconfig" | "credentials" | "resolve" | "connect" | "TLS" | "request";

interface Diagnosis {
  readonly stage: Stage;
  /** `unknown`: the request may have reached the server and may still take effect. */
  readonly effect: "none" | "unknown";
  /** What resolves it: a short wait (a restart), a longer wait, another protocol, or the operator. */
  readonly cure: "moment" | "wait" | "HTTP/1.1" | "repair";
  /** What the operator should check. */
  readonly advice: string;
}

/** One attempt without a response. */
export class KubeFailure extends Error {
  override readonly name = "KubeFailure";

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
  advice: "check that the API server is running there and that the address and port are correct",
} as const satisfies Diagnosis;

const UNRESOLVED = {
  stage: "resolve",
  effect: "none",
  cure: "moment",
  advice: "check the host name of the server and the system's resolver",
} as const satisfies Diagnosis;

const UNTRUSTED = {
  stage: "TLS",
  effect: "none",
  cure: "repair",
  advice:
    "check that the certificate authority is the one that signed the server's certificate, and that the certificate is valid for this host (or set tls-server-name)",
} as const satisfies Diagnosis;

const SILENT = {
  stage: "request",
  effect: "unknown",
  cure: "wait",
  advice: "check that the API server is healthy and reaches its etcd, and that no firewall blocks its port",
} as const satisfies Diagnosis;

const WITHOUT_HTTP2 = {
  stage: "connect",
  effect: "none",
  cure: "HTTP/1.1",
  advice: "check that the address is that of an API server",
} as const satisfies Diagnosis;

const REDIRECTED = {
  stage: "request",
  effect: "none",
  cure: "repair",
  advice: "check that the address is that of the API server itself, not of a login page or another web server",
} as const satisfies Diagnosis;

const TOO_LARGE = {
  stage: "request",
  effect: "unknown",
  cure: "repair",
  advice: "check that the address is that of what was asked for",
} as const satisfies Diagnosis;

const NOT_KEPT = {
  stage: "request",
  effect: "unknown",
  cure: "wait",
  advice: "check that a proxy or load balancer before the API server does not end or buffer long responses",
} as const satisfies Diagnosis;

const BY_ERROR_CODE: readonly (readonly [RegExp, Diagnosis])[] = [
  [/^(ECONNREFUSED|ConnectionRefused|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|FailedToOpenSocket)$/, REFUSED],
  [/^(ENOTFOUND|EAI_AGAIN|ESERVFAIL|ENODATA|ETIMEOUT|DNS_)/, UNRESOLVED],
  [/^HTTP2Unsupported$/, WITHOUT_HTTP2],
  [
    /^(EPROTO|CERT_|ERR_TLS|ERR_SSL|ERR_BORINGSSL|UNABLE_TO|SELF_SIGNED|DEPTH_ZERO|HOSTNAME_MISMATCH|INVALID_CA)/,
    UNTRUSTED,
  ],
];

const MEANINGS: readonly (readonly [RegExp, string])[] = [
  [
    /^(UNABLE_TO|SELF_SIGNED|DEPTH_ZERO|INVALID_CA)/,
    "the server's certificate is not signed by the certificate authority",
  ],
  [/^(ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)/, "the server's certificate is not valid for this host name"],
  [/^CERT_HAS_EXPIRED/, "the server's certificate has expired"],
  [/^CERT_NOT_YET_VALID/, "the server's certificate is not valid yet"],
  [/^(ECONNREFUSED|ConnectionRefused)/, "the connection was refused"],
  [/^ENOTFOUND/, "the host name cannot be resolved"],
];

/** Classifies an error of a socket, of TLS or of a time limit. */
export function failureOfConnection(error: unknown): KubeFailure {
  if (error instanceof KubeFailure) return error;
  if (!(error instanceof Error)) return new KubeFailure(SILENT, String(error), error);
  if (isSilence(error)) return new KubeFailure(SILENT, "no response within the time limit", error);
  const code = "code" in error ? String(error.code) : "";
  const [, diagnosis = SILENT] = BY_ERROR_CODE.find(([pattern]) => pattern.test(code)) ?? [];
  const [, meaning] = MEANINGS.find(([pattern]) => pattern.test(code)) ?? [];
  return new KubeFailure(diagnosis, describe(error, code, meaning), error);
}

/** What is looked at before the body of a response. */
export interface AnswerHead {
  readonly status: number;
  readonly headers: Pick<Headers, "get">;
}

/** A redirect is never followed: it would carry the credentials elsewhere. `undefined` for any other response. */
export function failureOfRedirect({ status, headers }: AnswerHead): KubeFailure | undefined {
  if (status < 300 || status >= 400) return undefined;
  // Without the query, which may contain secrets.
  const [place = ""] = (headers.get("location") ?? "").split(/[?#]/);
  const target = place === "" ? "another address" : `"${place}"`;
  return new KubeFailure(REDIRECTED, `it redirects to ${target} (${status})`);
}

/** A response that is larger than the request says. */
export function failureOfSize(mostBytes: number): KubeFailure {
  return new KubeFailure(TOO_LARGE, `the response is larger than ${mostBytes} bytes`);
}

/** A watch that was accepted and then closed. */
export function endedAtOnce(milliseconds: number): KubeFailure {
  return new KubeFailure(NOT_KEPT, `the server ended the watch at once, after ${Math.round(milliseconds)} ms`);
}

/** Ended by a time limit, or by the caller. */
export function isSilence(error: unknown): boolean {
  return error instanceof Error && (error.name === "TimeoutError" || error.name === "AbortError");
}

function describe(error: Error, code: string, meaning: string | undefined): string {
  if (meaning !== undefined) return `${meaning} (${code})`;
  const [firstSentence = ""] = error.message.replace(`${code}: `, "").split(/(?: fetching |\. (?=For more|Is the))/);
  return code === "" || code === firstSentence ? firstSentence : `${code}: ${firstSentence}`;
}

export interface FailedServer {
  readonly server: string;
  /** The error kind for a server that cannot be used. */
  readonly kind: ErrorKind;
}

/** The failure as the rest of the program knows it. */
export function unavailable(failure: KubeFailure, { server, kind }: FailedServer): PluginError {
  const { stage, advice } = failure.diagnosis;
  const message = `Cannot use the Kubernetes API: "${server}" failed at stage "${stage}": ${redact(failure.message)}`;
  return new PluginError(kind, message, { details: advice, cause: failure });
}

/** Whether a request that failed may have taken effect. A response, of any status, is never a failure. */
export function mayHaveTakenEffect(error: unknown): boolean {
  const failure = error instanceof PluginError ? error.cause : error;
  return failure instanceof KubeFailure && failure.diagnosis.effect === "unknown";
}

/** Whether a request had no response for a reason that may be over soon. */
export function isTemporary(error: unknown): boolean {
  const failure = error instanceof PluginError ? error.cause : error;
  return failure instanceof KubeFailure && failure.diagnosis.cure !== "repair";
}

/** `files`: quoted. */
export function kubeconfigInvalid(files: string, state: string, fix = ""): PluginError {
  return new PluginError("config-invalid", `Cannot use kubeconfig ${files}: ${redact(state)}`, { details: fix });
}
