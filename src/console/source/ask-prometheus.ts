/**
 * Asks the Prometheus of the cluster what fires, through the API server and with the token of one reader: who may get `services/proxy`
 * there, may ask Prometheus. The API server does not pass the token on.
 */
import { describeFailure } from "../../errors.ts";
import type { KubeClient, KubeRequest } from "../../kube/api.ts";
import { KubeFailure } from "../../kube/failure.ts";
import { lacksPermission, requireOk } from "../../kube/require-ok.ts";
import { shortValue } from "../../quote.ts";
import { SYSTEM_TIMERS, type Timers } from "../../timers.ts";
import { type AlertsFound, readFiringAlerts } from "./firing-alerts.ts";

/** A Service. */
export interface AlertsService {
  readonly namespace: string;
  readonly service: string;
  readonly port: number;
}

export interface PrometheusMeans {
  readonly client: Pick<KubeClient, "request">;
  readonly service: AlertsService;
  readonly now: () => Date;
  wait(milliseconds: number): Promise<void>;
  readonly timers?: Timers;
}

/** Prometheus itself evaluates rules each half a minute or so. */
const ASKED_EACH_MILLISECONDS = 30_000;
const ANSWER_MILLISECONDS = 5_000;
/** Health does not wait longer for it: the next page has what was found. */
const PATIENCE_MILLISECONDS = 500;
/** It answers with all alerts of the cluster: some thousands. */
const MOST_BYTES = 4 * 1024 * 1024;

export interface KnownAlerts {
  readonly found: AlertsFound;
  /** Milliseconds since 1970. */
  readonly at: number;
}

interface Question {
  readonly at: number;
  readonly answer: Promise<KnownAlerts>;
  /** Until there is an answer, that of the question before. */
  known: KnownAlerts;
  isAnswered: boolean;
}

export class AskedPrometheus {
  private last: Question | undefined;

  constructor(private readonly means: PrometheusMeans) {}

  /** Never throws: what cannot be known is `unknown`, with the reason. */
  async alerts(): Promise<KnownAlerts> {
    const { now, wait } = this.means;
    const at = now().getTime();
    const question = this.last !== undefined && at - this.last.at < ASKED_EACH_MILLISECONDS ? this.last : this.ask(at);
    if (question.isAnswered) return question.known;
    return Promise.race([question.answer, wait(PATIENCE_MILLISECONDS).then(() => question.known)]);
  }

  /** What was found for other rights may be more than these show. */
  forget(): void {
    this.last = undefined;
  }

  private ask(at: number): Question {
    const waiting: KnownAlerts = { found: { kind: "unknown", reason: "waiting for Prometheus" }, at };
    const answer = this.findAlerts().then((found): KnownAlerts => ({ found, at }));
    const question: Question = { at, answer, known: this.last?.known ?? waiting, isAnswered: false };
    void answer.then((known) => Object.assign(question, { known, isAnswered: true }));
    this.last = question;
    return question;
  }

  private async findAlerts(): Promise<AlertsFound> {
    const { client, service, now, timers = SYSTEM_TIMERS } = this.means;
    const limit = timers.timeout(ANSWER_MILLISECONDS);
    const request = requestFor(service, limit.signal);
    try {
      const response = await client.request(request);
      // The API server's own refusal of the token ends the session elsewhere; this one may be that of a proxy before Prometheus.
      if (response.status === 401) return unknown("Prometheus wants credentials, and gets none (401 Unauthorized)");
      return { kind: "firing", ...readFiringAlerts(requireOk(response, request), now()) };
    } catch (failure) {
      if (lacksPermission(failure)) return { kind: "hidden", what: alertsText(service) };
      if (limit.signal.aborted)
        return unknown(`Prometheus has not answered within ${ANSWER_MILLISECONDS / 1_000} seconds`);
      return unknown(reasonOf(failure));
    } finally {
      limit.cancel();
    }
  }
}

/** What who may not ask does not see. */
function alertsText({ namespace }: AlertsService): string {
  return `alerts of Prometheus (get of services/proxy in ${namespace})`;
}

function requestFor({ namespace, service, port }: AlertsService, signal: AbortSignal): KubeRequest {
  const path = `/api/v1/namespaces/${namespace}/services/${service}:${port}/proxy/api/v1/alerts`;
  return { method: "GET", path, attempt: "once", mostBytes: MOST_BYTES, signal };
}

function unknown(reason: string): AlertsFound {
  return { kind: "unknown", reason: shortValue(reason) };
}

/** The client takes what Prometheus has done for a fault of the API server. */
function reasonOf(failure: unknown): string {
  const cause = failure instanceof Error ? failure.cause : undefined;
  return cause instanceof KubeFailure ? `Prometheus cannot be asked: ${cause.message}` : describeFailure(failure);
}
