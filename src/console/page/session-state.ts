/** Who is logged in. The token of the login is not kept: the server has it, in memory. */
import { signal } from "@preact/signals";
import type { RefusalAnswer, Session } from "../api/session.ts";

export const session = signal<Session | undefined>(undefined);

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
  if (session.peek() === undefined) return;
  loginNotice.value = { message, isExpiry: true, ...(remedy === undefined ? {} : { remedy }) };
  session.value = undefined;
}
