/** What the rest of the program sees of a client of the orchestrator's API; `client.ts` opens one. */
export interface KubeRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** `/api/v1/namespaces/x/pods/y` */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** `application/json` if absent. */
  readonly contentType?: string;
  /** The form of the response; `application/json` if absent. */
  readonly accept?: string;
  readonly signal?: AbortSignal;
  /** Of the body of the response, after decompression: a larger one throws, and is not read to its end. Absent: any size. */
  readonly mostBytes?: number;
  /**
   * What to do after an attempt without a response. Absent: try again if it cannot have had an effect, or is a GET.
   * "retry": try again in any case. "once": report it at once.
   */
  readonly attempt?: "once" | "retry";
}

export interface KubeResponse {
  readonly status: number;
  readonly text: string;
  /** The time at which the server responded, by its own clock, as in its `Date` header. */
  readonly date?: string | undefined;
  /** Of a 401: which credentials were refused, for the message of `requireOk()`. */
  readonly credentials?: string;
}

export interface WatchEvent {
  /**
   * Two that the server does not send. OPENED: it has accepted the watch; that is the first event. SILENT: nothing was heard for
   * as long as even a bookmark takes; that is the last one.
   */
  readonly type: "OPENED" | "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR" | "SILENT";
  /** The object, as JSON; for an ERROR a Status, for those that the server does not send an empty object. */
  readonly text: string;
}

export interface KubeClient {
  /**
   * Any HTTP status is a result; only a request without a response throws a PluginError (`mayHaveTakenEffect()` tells
   * whether it may have taken effect). Retry-After is honoured within the time limit.
   */
  request(request: KubeRequest): Promise<KubeResponse>;
  /**
   * Events until the server or `signal` ends the watch; the caller resumes from the last resourceVersion. History that is
   * gone is an ERROR event with a Status of code 410. Throws a PluginError for another refusal, a broken connection, a
   * watch without a response, and one that the server ends at once. A watch that asked for bookmarks and hears nothing, not
   * even those, ends too, with SILENT: nothing tells a dead connection from a server without news, so the caller asks for it again.
   */
  watch(path: string, query: Readonly<Record<string, string>>, signal: AbortSignal): AsyncIterable<WatchEvent>;
  /** Ends all requests and watches. */
  close(): Promise<void>;
}

/** For responses that go on for hours. */
export interface KubeLines {
  /**
   * The lines of the response to a GET, each as soon as it is there, until the server or `signal` ends it. Throws a PluginError
   * for a refusal (`requireOk()`) and for a broken connection.
   */
  lines(path: string, query: Readonly<Record<string, string>>, signal: AbortSignal): AsyncIterable<string>;
  /** Ends all responses. */
  close(): Promise<void>;
}
