/** Who is logged in, and what the page may show of this console. */
import * as v from "valibot";

export const VIEWS = ["health", "flows", "addresses"] as const;
export type View = (typeof VIEWS)[number];

export const sessionSchema = v.object({
  product: v.string(),
  version: v.string(),
  /** `host`: one host without Kubernetes, started by its owner with `vendorctl console`. */
  mode: v.picklist(["cluster", "host"]),
  user: v.string(),
  /** Whether drafts can be applied here. In a cluster each write is still decided by the API server. */
  writable: v.boolean(),
  /**
   * Repeated in the header of every request but the login, also of `GET /api/session`. The page keeps it in `localStorage` until the
   * logout: tabs share it, and a server at another port of the same host, which gets the cookie, does not get it.
   */
  csrfToken: v.string(),
  /** Milliseconds since 1970: the session ends then, or when it was not used for `idleMilliseconds`. */
  expires: v.number(),
  idleMilliseconds: v.number(),
});
export type Session = Readonly<v.InferOutput<typeof sessionSchema>>;

export const CSRF_HEADER = "x-csrf-token";
/**
 * With any value, of a request that nobody asked for: a stream that is opened again, a view that is brought up to date. It does not
 * keep the session from ending when nobody uses it.
 */
export const UNATTENDED_HEADER = "x-unattended";

/** What is posted to `/api/login`. */
export const loginSchema = v.object({ token: v.string() });

/** Of every answer that is not of the status 200. 401: the session has ended, or the token is refused. */
export const refusalSchema = v.object({
  message: v.string(),
  remedy: v.exactOptional(v.string()),
  /** With 401: how the page has to ask for a login. */
  mode: v.exactOptional(v.picklist(["cluster", "host"])),
});
export type RefusalAnswer = Readonly<v.InferOutput<typeof refusalSchema>>;

/**
 * The last line of a stream that did not end by itself. An empty line only says that the connection is alive. Status 409: what the
 * reader may see has changed; the page opens the stream again. 401 as above; 429, 503: later.
 */
export const streamEndSchema = v.object({ refused: v.object({ status: v.number(), ...refusalSchema.entries }) });
export type StreamEnd = Readonly<v.InferOutput<typeof streamEndSchema>>;
