/**
 * The aggregated API of flows: HTTPS, for API servers alone, which name the caller (front-proxy.ts). Answers are lines of JSON
 * (src/flows/flow-answer.ts).
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { TLSSocket } from "node:tls";
import { type FlowAnswer, type FlowQuestion, flowLine } from "../../flows/flow-answer.ts";
import { FlowQueryError } from "../../flows/flow-query.ts";
import { readFlowRequest } from "../../flows/flow-request.ts";
import type { KeyPair } from "../../tls/x509.ts";
import { sendText } from "../../web/send-lines.ts";
import { WebListener } from "../../web/web-listener.ts";
import {
  type AccessReviews,
  CallerSight,
  mayListClusterPolicies,
  mayListPolicies,
  readingFlows,
} from "./access-reviews.ts";
import type { ClusterFlows, Reader } from "./cluster-flows.ts";
import { DISCOVERY, type FlowApiPath, flowApiPath, statusObject } from "./discovery.ts";
import { type Caller, callerOf, type FrontProxy } from "./front-proxy.ts";

export interface FlowApiOptions {
  readonly flows: Pick<ClusterFlows, "answer">;
  readonly reviews: AccessReviews;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
  /** How often an answer that goes on is reviewed. */
  readonly reviewMilliseconds?: number;
}

/** The API server gives up after a minute. */
const LONGEST_MILLISECONDS = 50_000;
const REVIEW_MILLISECONDS = 60_000;
const MOST_ANSWERS = 64;
/** Of them, for one user. */
const MOST_OF_USER = 16;
/** Header and parameters. */
const LONGEST_HEAD = 64 * 1024;

export class FlowApiServer {
  private readonly listener: WebListener;
  private proxy: FrontProxy | undefined;
  private answers = 0;
  /** By user. */
  private readonly answering = new Map<string, number>();

  constructor(private readonly options: FlowApiOptions) {
    this.listener = new WebListener({
      mostHeadBytes: LONGEST_HEAD,
      serve: (request, response) => {
        this.serve(request, response).catch((failure) => refuse(response, failure));
      },
    });
  }

  /** From now on with this certificate, and for API servers that this authority signed. Answers that are under way go on. */
  listen(hostname: string, port: number, { certificate, key }: KeyPair, proxy: FrontProxy): Promise<void> {
    this.proxy = proxy;
    // Who has none, or a wrong one, gets a refusal that says so.
    const callers = { ca: proxy.authorities, requestCert: true, rejectUnauthorized: false };
    return this.listener.listen({ hostname, port, tls: { cert: certificate, key, ...callers } });
  }

  /** For tests: of port 0. */
  get port(): number {
    return this.listener.port;
  }

  close(): void {
    this.listener.close();
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "/", "https://localhost");
    const { proxy } = this;
    // Before anything is said, even that there is no such path.
    const caller = proxy && callerOf(request.rawHeaders, peerOf(request.socket), proxy);
    if (caller === undefined)
      throw new Refusal(401, "only API servers are answered, on behalf of those who asked them");
    if (request.method !== "GET") throw new Refusal(405, `${request.method} is not supported; use GET`);
    if (isHealthPath(pathname)) return sendOk(response);
    const path = flowApiPath(pathname);
    if (path !== undefined) return this.answer(path, { caller, parameters: searchParams }, response);
    // The newer form of all groups together: the API server asks for each group then.
    if (pathname === "/apis" && request.headers.accept?.includes("as=APIGroupDiscoveryList") === true)
      throw new Refusal(406, "use /apis without another form");
    const document = DISCOVERY[pathname];
    if (document === undefined) throw new Refusal(404, "there is no such path in the API of flows");
    sendJson(response, 200, document);
  }

  private async answer(
    { resource, namespace }: FlowApiPath,
    { caller, parameters }: { readonly caller: Caller; readonly parameters: URLSearchParams },
    response: ServerResponse,
  ): Promise<void> {
    const { reviews } = this.options;
    const question = inNamespace(readFlowRequest(resource, parameters), namespace);
    const verb = question.kind === "flows" && question.follow ? "watch" : "list";
    const mayRead = () => reviews.may(caller, readingFlows(resource, verb, namespace));
    if (!(await mayRead())) {
      const place = namespace === undefined ? "at the cluster scope" : `in the namespace "${namespace}"`;
      throw new Refusal(403, `User ${JSON.stringify(caller.user)} cannot ${verb} ${resource} of flows ${place}`);
    }
    using _place = this.placeFor(caller.user);
    const ending = new AbortController();
    response.once("close", () => ending.abort());
    const reading = await reviewedReader(this.options, caller, { mayRead, stop: () => ending.abort() });
    const limit = verb === "list" ? [AbortSignal.timeout(LONGEST_MILLISECONDS)] : [];
    try {
      const stop = AbortSignal.any([ending.signal, ...limit]);
      const answers = await this.options.flows.answer(question, reading.reader, stop);
      await sendLines(response, answers, question.kind === "explanation" ? "needs an answer" : "may be empty");
    } finally {
      reading.end();
    }
  }

  /** Of all answers at the same time; given back however the answer ends. */
  private placeFor(user: string): Disposable {
    const ofUser = this.answering.get(user) ?? 0;
    if (this.answers >= MOST_ANSWERS) throw new Refusal(429, "too many answers at the same time; try again later");
    if (ofUser >= MOST_OF_USER)
      throw new Refusal(429, `you already read ${MOST_OF_USER} answers at the same time; end one of them`);
    this.answers += 1;
    this.answering.set(user, ofUser + 1);
    return {
      [Symbol.dispose]: () => {
        this.answers -= 1;
        const left = (this.answering.get(user) ?? 1) - 1;
        if (left > 0) this.answering.set(user, left);
        else this.answering.delete(user);
      },
    };
  }
}

/** What the caller may see is asked for again every minute; without the right to read flows the answer ends. */
async function reviewedReader(
  { reviews, reviewMilliseconds = REVIEW_MILLISECONDS, log }: FlowApiOptions,
  caller: Caller,
  { mayRead, stop }: { readonly mayRead: () => Promise<boolean>; readonly stop: () => void },
): Promise<{ readonly reader: Reader; readonly end: () => void }> {
  let sight = await CallerSight.of(reviews, caller);
  const isWhole = sight.seesEverything;
  const listeners = new Set<() => void>();
  const again = setInterval(() => {
    void (async () => {
      try {
        const [next, may] = await Promise.all([CallerSight.of(reviews, caller), mayRead()]);
        // Nodes were asked as only a reader of everything may ask them.
        if (!may || (isWhole && !next.seesEverything)) stop();
        sight = next;
        for (const listener of listeners) listener();
      } catch (failure) {
        log(`Cannot review what a reader of flows may see, so its answer ends: ${reasonOf(failure)}`, "WARNING");
        stop();
      }
    })();
  }, reviewMilliseconds);
  const reader: Reader = {
    seesEverything: () => isWhole,
    seesNodes: () => sight.seesNodes,
    sightFor: (namespaces) => sight.in(namespaces),
    wholeSight: (namespace) => sight.whole(namespace),
    onReview: (listener) => {
      listeners.add(listener);
      return { [Symbol.dispose]: () => listeners.delete(listener) };
    },
    mayListPolicies: (namespace) => mayListPolicies(reviews, caller, namespace),
    mayListClusterPolicies: () => mayListClusterPolicies(reviews, caller),
  };
  return { reader, end: () => clearInterval(again) };
}

function inNamespace(question: FlowQuestion, namespace: string | undefined): FlowQuestion {
  if (namespace === undefined || question.kind === "explanation") return question;
  const { namespace: given = namespace } = question.query;
  if (given !== namespace)
    throw new FlowQueryError("namespace", `it is ${JSON.stringify(given)}; the path says ${JSON.stringify(namespace)}`);
  return { ...question, query: { ...question.query, namespace } };
}

function peerOf(socket: IncomingMessage["socket"]) {
  const { authorized, getPeerCertificate } = socket as TLSSocket;
  const name = getPeerCertificate?.call(socket)?.subject?.CN;
  return { isVerified: authorized === true, commonName: typeof name === "string" ? name : undefined };
}

function isHealthPath(path: string): boolean {
  return ["/healthz", "/livez", "/readyz"].includes(path);
}

/** What the client is told with a status. */
class Refusal extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

function refuse(response: ServerResponse, failure: unknown): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const code = failure instanceof Refusal ? failure.code : failure instanceof FlowQueryError ? 400 : 503;
  sendJson(response, code, statusObject(code, reasonOf(failure)));
}

function sendJson(response: ServerResponse, code: number, value: object): void {
  response.writeHead(code, { "content-type": "application/json" });
  response.end(`${JSON.stringify(value)}\n`);
}

function sendOk(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/plain" });
  response.end("ok\n");
}

/** Waits for a client that reads slowly: so do the nodes then. */
async function sendLines(
  response: ServerResponse,
  answers: AsyncIterable<FlowAnswer>,
  whole: "needs an answer" | "may be empty",
): Promise<void> {
  const start = () => {
    if (response.headersSent) return;
    response.writeHead(200, { "content-type": "application/x-ndjson", "cache-control": "no-store" });
    response.flushHeaders();
  };
  if (whole === "may be empty") start();
  for await (const answer of answers) {
    if (response.destroyed) return;
    start();
    await sendText(response, flowLine(answer));
  }
  if (!response.headersSent) throw new Refusal(404, "no flow with this ID that you may see is kept");
  response.end();
}

function reasonOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure);
}
