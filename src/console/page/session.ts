/** Begins and ends the session: with the cookie of an earlier visit, a token that was typed, or the one in the address. */
import { signal } from "@preact/signals";
import * as v from "valibot";
import { sessionSchema } from "../api/session.ts";
import { ask, Refusal } from "./ask.ts";
import { begin, csrfToken, end, loginNotice, session } from "./session-state.ts";

/** Nothing is known yet. */
export const isStarting = signal(true);

const ONE_TIME = /^#token=(.+)$/;

export async function startSession(): Promise<void> {
  const [, token] = ONE_TIME.exec(location.hash) ?? [];
  // First, so that the token is in no history, bookmark or copied address.
  if (token !== undefined) history.replaceState(null, "", `${location.pathname}#/health`);
  try {
    if (token !== undefined) await logIn(decodeURIComponent(token));
    else if (csrfToken() !== undefined) begin(await ask("/api/session", sessionSchema));
  } catch (error) {
    const { status, message, remedy } = error instanceof Refusal ? error : new Refusal(0, String(error));
    // Of another console at this address.
    if (status === 403) end();
    else if (status !== 401 || token !== undefined)
      loginNotice.value = { message, isExpiry: false, ...(remedy === undefined ? {} : { remedy }) };
  } finally {
    isStarting.value = false;
  }
}

/** Throws `Refusal`. */
export async function logIn(token: string): Promise<void> {
  begin(await ask("/api/login", sessionSchema, { body: { token } }));
  loginNotice.value = undefined;
}

export async function logOut(): Promise<void> {
  await ask("/api/logout", v.unknown(), { body: {} }).catch(() => undefined);
  loginNotice.value = { message: "You are logged out", isExpiry: false };
  end();
}

/** So often within the time after which an unused session ends. */
const SHARE_OF_IDLE = 1 / 6;

/** Streams do not count as use; somebody who reads, scrolls or types does. */
export function keepSession(until: AbortSignal): void {
  let saidAt = Date.now();
  const said = () => {
    const idle = session.peek()?.idleMilliseconds ?? 0;
    if (Date.now() - saidAt < idle * SHARE_OF_IDLE) return;
    saidAt = Date.now();
    // If it fails, the stream of the health says why.
    ask("/api/session", sessionSchema).then(begin, () => undefined);
  };
  for (const event of ["pointerdown", "keydown", "wheel"])
    addEventListener(event, said, { signal: until, passive: true });
}
