/** Who is logged in. The token of the login is not kept: the server has it, in memory. */
import { signal } from "@preact/signals";
import type { RefusalAnswer, Session } from "../api/session.ts";
import { store, stored } from "./browser-store.ts";

export const session = signal<Session | undefined>(undefined);

/**
 * The token that each request repeats. It is kept after the page is closed, so that the next tab has the session too; alone it opens
 * nothing.
 */
export function csrfToken(): string | undefined {
  return session.peek()?.csrfToken ?? stored(CSRF_TOKEN);
}

export function begin(begun: Session): void {
  store(CSRF_TOKEN, begun.csrfToken);
  loginMode.value = begun.mode;
  session.value = begun;
}

export function end(): void {
  store(CSRF_TOKEN, undefined);
  session.value = undefined;
}

const CSRF_TOKEN = "csrf-token";

/** What the login says besides the form. */
export interface LoginNotice {
  readonly message: string;
  readonly remedy?: string;
  /** Somebody was logged in: the view is shown again after the login. */
  readonly isExpiry: boolean;
}

export const loginNotice = signal<LoginNotice | undefined>(undefined);

/** How the console was started, once that is known: it says which token to ask for. */
export const loginMode = signal<Session["mode"]>("cluster");

export function sessionEnded({ message, remedy, mode }: RefusalAnswer): void {
  if (mode !== undefined) loginMode.value = mode;
  if (csrfToken() === undefined) return;
  loginNotice.value = { message, isExpiry: true, ...(remedy === undefined ? {} : { remedy }) };
  end();
}
