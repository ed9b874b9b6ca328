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

/** Of every answer that is not of the status 200. */
export const refusalSchema = v.object({
  message: v.string(),
  remedy: v.exactOptional(v.string()),
  /** With 401: how the page has to ask for a login. */
  mode: v.exactOptional(v.picklist(["cluster", "host"])),
});
export type RefusalAnswer = Readonly<v.InferOutput<typeof refusalSchema>>;
