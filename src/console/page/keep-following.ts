/** Keeps a stream open: again after failures, not while nobody looks, and never longer than the session. */
import { Refusal } from "./ask.ts";
import { session } from "./session-state.ts";

/** What a view says about its stream. */
export type Following =
  | { readonly kind: "asking" }
  | { readonly kind: "live" }
  /** The answer is complete, and nothing follows. */
  | { readonly kind: "complete" }
  | { readonly kind: "lost"; readonly refusal: Refusal; readonly retryAt: number };

export interface Attempt {
  readonly signal: AbortSignal;
  /** Not the first one: nobody asked for it. */
  readonly isUnattended: boolean;
  /** The stream is open. */
  live(): void;
}

export interface FollowedStream {
  /** From the beginning. Returns when the answer ends by itself: with what comes, that is too early. */
  read(attempt: Attempt): Promise<"again" | "complete">;
  tell(following: Following): void;
  /** The reader may see other things now, perhaps fewer. */
  forget(): void;
}

const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 15_000;
/** A browser opens few connections to one server: hidden tabs leave theirs to the others. */
const HIDDEN_MILLISECONDS = 20_000;
const RIGHTS_CHANGED = 409;

/** Ends with the signal, with the session, or when the answer is complete. */
export async function keepFollowing({ read, tell, forget }: FollowedStream, signal: AbortSignal): Promise<void> {
  let pause = FIRST_PAUSE;
  let isUnattended = false;
  const isOver = () => signal.aborted || session.peek() === undefined;
  while (!isOver()) {
    await untilSeen(signal);
    using hidden = whenHidden();
    const live = () => {
      pause = FIRST_PAUSE;
      tell({ kind: "live" });
    };
    const attempt = { signal: AbortSignal.any([signal, hidden.signal]), isUnattended, live };
    const outcome = await read(attempt).catch((error: unknown) => error);
    isUnattended = true;
    if (isOver()) return;
    if (outcome === "complete") return tell({ kind: "complete" });
    if (hidden.signal.aborted) continue;
    const refusal = refusalIn(outcome);
    if (refusal.status === RIGHTS_CHANGED) forget();
    else tell({ kind: "lost", refusal, retryAt: Date.now() + pause });
    await passed(pause, signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
}

function refusalIn(outcome: unknown): Refusal {
  if (outcome instanceof Refusal) return outcome;
  return new Refusal(
    0,
    outcome === "again" ? "The console ended the answer" : "The connection to the console was lost",
  );
}

/** Or the signal has fired. */
export function passed(milliseconds: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, milliseconds);
  signal.addEventListener("abort", () => resolve(), { once: true });
  return promise.finally(() => clearTimeout(timer));
}

async function untilSeen(signal: AbortSignal): Promise<void> {
  if (!document.hidden || signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const check = () => {
    if (!document.hidden) resolve();
  };
  document.addEventListener("visibilitychange", check);
  signal.addEventListener("abort", () => resolve(), { once: true });
  await promise;
  document.removeEventListener("visibilitychange", check);
}

/** Fires when the page has been hidden for a while. */
function whenHidden(): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const check = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(() => controller.abort(), HIDDEN_MILLISECONDS);
  };
  document.addEventListener("visibilitychange", check);
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", check);
    },
  };
}
