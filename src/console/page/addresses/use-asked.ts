/** An answer that is asked for again now and then, as long as it is seen. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Refusal, type Request } from "../ask.ts";

export type Asked<Value> =
  | { readonly kind: "asking" }
  | { readonly kind: "known"; readonly value: Value /** Of a later attempt. */; readonly refusal?: Refusal }
  | { readonly kind: "refused"; readonly refusal: Refusal };

const AGAIN_EVERY = 10_000;

/** `key`: of what is asked for; another one is asked for at once. */
export function useAsked<Value>(key: string, askFor: (request: Request) => Promise<Value>): Asked<Value> {
  const asked = useSignal<Asked<Value>>({ kind: "asking" });
  useEffect(() => {
    asked.value = { kind: "asking" };
    const end = new AbortController();
    let isUnattended = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      if (!document.hidden || !isUnattended) {
        const answer = await askFor({ signal: end.signal, isUnattended }).then(
          (value): Asked<Value> => ({ kind: "known", value }),
          (error: unknown): Asked<Value> => withRefusal(asked.peek(), refusalOf(error)),
        );
        if (end.signal.aborted) return;
        asked.value = answer;
      }
      isUnattended = true;
      timer = setTimeout(read, AGAIN_EVERY);
    };
    void read();
    return () => {
      end.abort();
      clearTimeout(timer);
    };
  }, [key]);
  return asked.value;
}

function refusalOf(error: unknown): Refusal {
  return error instanceof Refusal ? error : new Refusal(0, String(error));
}

/** What was known stays on the page if the console does not answer, and goes if the reader may not see it any more. */
function withRefusal<Value>(before: Asked<Value>, refusal: Refusal): Asked<Value> {
  const isForNow = refusal.status === 0 || refusal.status >= 500 || refusal.status === 429;
  return before.kind === "known" && isForNow ? { ...before, refusal } : { kind: "refused", refusal };
}
