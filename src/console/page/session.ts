/** Begins and ends the session: with the cookie of an earlier visit, a token that was typed, or the one in the address. */
import { signal } from "@preact/signals";
import * as v from "valibot";
import { type Session, sessionSchema } from "../api/session.ts";
import { ask, Refusal } from "./ask.ts";
import { loginMode, loginNotice, session } from "./session-state.ts";

/** Nothing is known yet. */
export const isStarting = signal(true);

const ONE_TIME = /^#token=(.+)$/;

export async function startSession(): Promise<void> {
  const [, token] = ONE_TIME.exec(location.hash) ?? [];
  // First, so that the token is in no history, bookmark or copied address.
  if (token !== undefined) history.replaceState(null, "", `${location.pathname}#/health`);
  try {
    if (token !== undefined) await logIn(decodeURIComponent(token));
    else begin(await ask("/api/session", sessionSchema));
  } catch (error) {
    const { status, message, remedy } = error instanceof Refusal ? error : new Refusal(0, String(error));
    if (status !== 401 || token !== undefined)
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

function begin(begun: Session): void {
  loginMode.value = begun.mode;
  session.value = begun;
}

export async function logOut(): Promise<void> {
  await ask("/api/logout", v.unknown(), { body: {} }).catch(() => undefined);
  loginNotice.value = { message: "You are logged out", isExpiry: false };
  session.value = undefined;
}
